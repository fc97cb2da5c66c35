import { bestOf, quantile, type Standing } from "./contest.js";
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
  const rows = results.flatMap(compare);
  const left = 24 + LETTER * Math.max(...rows.map(({ name }) => name.length));
  const scale = logarithmic(
    rows.flatMap(({ low, high }) => [low, high]),
    left,
  );
  const level = rows.filter(({ times }) => times >= 1).length;
  const signs: readonly Sign[] = [
    ["level or ahead", (x) => `<circle class="holdfast" cx="${x + 9}" cy="58" r="6"/>`],
    ["behind", (x) => `<circle class="peer" cx="${x + 9}" cy="58" r="6"/>`],
    ["where the quartiles of both lie", spreadSign],
    [
      "as good as the best",
      (x) => `<line class="level" x1="${x + 9}" y1="51" x2="${x + 9}" y2="67"/>`,
    ],
  ];
  const share = `${level} of ${rows.length}`;
  const title = `Holdfast beside the best of the other packages: level or ahead in ${share}`;
  const note = "how many times better, as each question asks; medians; logarithmic axis";
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
          dot(times >= 1 ? "holdfast" : "peer", scale.x(times), index),
        ].join(""),
      ),
    ].join("\n"),
  );
}

function compare({ question, standings }: Result): Comparison[] {
  const { store, name, better } = question;
  const ours = bestOf("holdfast", better, standings);
  const peer = bestOf("peer", better, standings);
  if (Number.isNaN(ours.median) || Number.isNaN(peer.median)) return [];
  const [good, bad] = better === "higher" ? [0.75, 0.25] : [0.25, 0.75];
  const times = (our: number, their: number): number =>
    better === "higher" ? our / their : their / our;
  return [
    {
      name: `${store}: ${name.replaceAll("-", " ")}`,
      times: times(ours.median, peer.median),
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
