import type { Goal, Standing } from "./contest.js";

/**
 * Demands on ratios of one run. They compare the figures of the question, or those of the column
 * `key`, which cannot be drawn in the picture of the question.
 */
export function atMost(
  most: number,
  what: string,
  ours: Standing,
  other: Standing,
  key?: string,
): Goal {
  const value = figureOf(ours, key) / figureOf(other, key);
  return {
    text: `at most ${most} × ${what}`,
    value,
    isMet: value <= most,
    ...line(most, other, key),
  };
}

export function atLeast(
  least: number,
  what: string,
  ours: Standing,
  other: Standing,
  key?: string,
): Goal {
  const value = figureOf(ours, key) / figureOf(other, key);
  const text = `at least ${least} × ${what}`;
  return { text, value, isMet: value >= least, ...line(least, other, key) };
}

function figureOf({ median, more }: Standing, key?: string): number {
  return key === undefined ? median : (more[key] ?? Number.NaN);
}

function line(times: number, { median }: Standing, key?: string): Pick<Goal, "line"> {
  return key === undefined ? { line: times * median } : {};
}
