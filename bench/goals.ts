import type { Goal, Standing } from "./contest.js";

/** Demands on ratios of one run, of the figures of the question or of the column `key`. */
export function atMost(
  most: number,
  what: string,
  ours: Standing,
  other: Standing,
  key?: string,
): Goal {
  const value = figureOf(ours, key) / figureOf(other, key);
  return { text: `at most ${most} × ${what}`, value, isMet: value <= most };
}

export function atLeast(
  least: number,
  what: string,
  ours: Standing,
  other: Standing,
  key?: string,
): Goal {
  const value = figureOf(ours, key) / figureOf(other, key);
  return { text: `at least ${least} × ${what}`, value, isMet: value >= least };
}

function figureOf({ median, more }: Standing, key?: string): number {
  return key === undefined ? median : (more[key] ?? Number.NaN);
}
