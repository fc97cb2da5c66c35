import { quantile, type Standing } from "./contest.js";
import {
  axis,
  bar,
  dot,
  LETTER,
  labels,
  linear,
  logarithmic,
  picture,
  type Scale,
  type Sign,
  spread,
  spreadSign,
} from "./picture.js";
import type { Result } from "./results.js";
import { fateOf, figure } from "./table.js";

/** Figures further apart than that are drawn by their powers of ten. */
const MOST_LINEAR = 30;

/** One result: a bar or a dot for each contestant that has figures, with its spread. */
export function chart({ question, standings }: Result): string {
  const { store, title, unit, better } = question;
  const left = 24 + LETTER * Math.max(...standings.map(({ name }) => name.length));
  const finished = standings.filter(({ failure }) => failure === null);
  const scale = scaleOf(finished.flatMap(quartiles), left);
  const kind = scale.isLogarithmic ? "; logarithmic axis" : "";
  return picture(
    {
      title: `${store}: ${title}`,
      note: `${unit}, ${better} is better; medians of interleaved rounds${kind}`,
      signs: signsOf(standings, scale),
    },
    standings.length,
    [
      axis(scale, standings.length),
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

/** The signs of this picture. */
function signsOf(standings: readonly Standing[], scale: Scale): Sign[] {
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
  return [
    ...roles.map((role) => [titles[role], swatch(role)] as const),
    ["middle half of the rounds", spreadSign],
  ];
}
