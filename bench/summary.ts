import { quantile, type Standing } from "./contest.js";
import { placeOf, shortOf } from "./meaning.js";
import {
  axis,
  dot,
  LETTER,
  labels,
  logarithmic,
  picture,
  type Sign,
  spread,
  spreadSign,
  upright,
} from "./picture.js";
import type { Result } from "./results.js";
import { advantageOf, isBehind, pairOf } from "./verdict.js";

interface Comparison {
  readonly name: string;
  /** How many times better than the best peer: below 1, worse. */
  readonly times: number;
  /** The same from the worse quartile of ours to the better of theirs, and the other way round. */
  readonly low: number;
  readonly high: number;
}

/** All questions that have peers in one picture: Holdfast as a multiple of the best of them. */
export function summary(results: readonly Result[]): string {
  const rows = [...results].sort(byStore).flatMap(compare);
  const left = 24 + LETTER * Math.max(...rows.map(({ name }) => name.length));
  const scale = logarithmic(
    rows.flatMap(({ low, high }) => [low, high]),
    left,
  );
  const level = rows.filter(({ times }) => !isBehind(times)).length;
  const signs: readonly Sign[] = [
    ["level or ahead", (x) => `<circle class="holdfast" cx="${x + 9}" cy="58" r="6"/>`],
    ["behind", (x) => `<circle class="peer" cx="${x + 9}" cy="58" r="6"/>`],
    ["middle half of the rounds", spreadSign],
    [
      "as good as the best",
      (x) => `<line class="level" x1="${x + 9}" y1="51" x2="${x + 9}" y2="67"/>`,
    ],
  ];
  const share = `${level} of ${rows.length}`;
  const title = `Holdfast beside the best of the other packages: level or ahead in ${share}`;
  const note = "× says how many times better: faster, smaller or fewer; medians; logarithmic axis";
  return picture(
    { title, note, signs },
    rows.length,
    [
      axis(scale, rows.length, " ×"),
      upright("level", scale.x(1), rows.length),
      ...rows.map(({ name, times, low, high }, index) =>
        [
          labels(name, `${times.toPrecision(times < 100 ? 2 : 3)} ×`, left, index),
          spread(scale.x(low), scale.x(high), index),
          dot(isBehind(times) ? "peer" : "holdfast", scale.x(times), index),
        ].join(""),
      ),
    ].join("\n"),
  );
}

/** The stores one after the other, the questions of each in the order of the page. */
function byStore({ question: one }: Result, { question: other }: Result): number {
  if (one.store !== other.store) return one.store < other.store ? -1 : 1;
  return placeOf(one.name) - placeOf(other.name);
}

function compare(result: Result): Comparison[] {
  const { store, name, better } = result.question;
  const pair = pairOf(result);
  const advantage = advantageOf(better, pair);
  if (Number.isNaN(advantage)) return [];
  const [good, bad] = better === "higher" ? [0.75, 0.25] : [0.25, 0.75];
  const times = (our: number, their: number): number =>
    better === "higher" ? our / their : their / our;
  const { ours, peer } = pair;
  return [
    {
      name: `${store}: ${shortOf(name)}`,
      times: advantage,
      low: times(at(ours, bad), at(peer, good)),
      high: times(at(ours, good), at(peer, bad)),
    },
  ];
}

function at({ samples }: Standing, part: number): number {
  return quantile(
    samples.map(({ value }) => value),
    part,
  );
}
