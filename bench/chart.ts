import { quantile, type Standing } from "./contest.js";
import {
  axis,
  bar,
  dot,
  LETTER,
  labels,
  legend,
  linear,
  logarithmic,
  picture,
  type Scale,
  spread,
  spreadSign,
  upright,
} from "./picture.js";
import type { Result } from "./results.js";
import { fateOf, figure } from "./table.js";

/** Figures further apart than that are drawn by their powers of ten. */
const MOST_LINEAR = 30;

/** One result: a bar or a dot for each contestant that has figures, with its spread. */
export function chart({ question, standings, goals }: Result): string {
  const { store, title, unit, better } = question;
  const lines = goals.flatMap(({ line }) => (line && Number.isFinite(line) ? [line] : []));
  const left = 24 + LETTER * Math.max(...standings.map(({ name }) => name.length));
  const finished = standings.filter(({ failure }) => failure === null);
  const scale = scaleOf([...finished.flatMap(quartiles), ...lines], left);
  const kind = scale.isLogarithmic ? "; logarithmic axis" : "";
  return picture(
    `${store}: ${title}`,
    `${unit}, ${better} is better; medians of interleaved rounds${kind}`,
    standings.length,
    [
      legendOf(standings, lines.length > 0, scale),
      axis(scale, standings.length),
      ...[...new Set(lines)].map((value) => upright("goal", scale.x(value), standings.length)),
      ...standings.map((one, index) => row(one, index, left, scale)),
    ].join("\n"),
  );
}

function quartiles({ samples }: Standing): number[] {
  const values = samples.map(({ value }) => value);
  return [quantile(values, 0.25), quantile(values, 0.75)];
}

function scaleOf(values: readonly number[], left: number): Scale {
  const smallest = Math.min(...values);
  const isWide = smallest > 0 && Math.max(...values) / smallest > MOST_LINEAR;
  return isWide ? logarithmic(values, left) : linear(values, left);
}

function row(one: Standing, index: number, left: number, scale: Scale): string {
  const { name, role, median, samples, failure } = one;
  if (failure !== null) return labels(name, fateOf(one), left, index);
  const at = scale.x(median);
  const [low = at, high = at] = quartiles(one).map(scale.x);
  const range = samples.length > 1 ? spread(low, high, index) : "";
  return [
    labels(name, figure(median), left, index),
    ...(scale.isLogarithmic ? [range, dot(role, at, index)] : [bar(role, left, at, index), range]),
  ].join("");
}

/** The legend of this picture. */
function legendOf(standings: readonly Standing[], hasGoals: boolean, scale: Scale): string {
  const titles = {
    holdfast: "Holdfast",
    peer: "other packages",
    floor: "floor: raw operations",
    foreign: "other languages",
    "foreign floor": "raw operations of a language",
  };
  const roles = [...new Set(standings.map(({ role }) => role))];
  const swatch = (role: string) => (x: number) =>
    scale.isLogarithmic
      ? `<circle class="${role}" cx="${x + 9}" cy="58" r="6"/>`
      : `<rect class="${role}" x="${x}" y="53" width="18" height="11" rx="2"/>`;
  const goal = (x: number) => `<line class="goal" x1="${x + 9}" y1="51" x2="${x + 9}" y2="67"/>`;
  return legend([
    ...roles.map((role) => [titles[role], swatch(role)] as const),
    ["middle half of the rounds", spreadSign],
    ...(hasGoals ? [["goal", goal] as const] : []),
  ]);
}
