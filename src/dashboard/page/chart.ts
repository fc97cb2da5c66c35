import type { Point } from "../message.js";
import { type Element, html } from "./preact.js";
import { duration, time } from "./text.js";

/** One colour of a chart. */
export interface ChartPart {
  readonly label: string;
  /** The class that gives it its colour. */
  readonly tone: "one" | "two" | "three" | "bad";
  readonly value: (point: Point) => number;
}

const POINT_MS = 10_000;
const WIDTH = 300;
const HEIGHT = 56;
const MIN_POINTS = 30;

/** Which number is shown next to the title: that of the last point, or the sum of all. */
export type Headline = "now" | "sum";

/** The content of a chart. */
export interface ChartOptions {
  readonly title: string;
  readonly points: readonly Point[];
  readonly series: readonly ChartPart[];
  readonly headline?: Headline;
  readonly show?: (value: number) => string;
}

/** Bars over the last hour, the series of one point on top of each other. */
export function chart(options: ChartOptions): Element {
  const { title, points, series, headline = "now" } = options;
  const { show = (value) => value.toLocaleString("en") } = options;
  const sumOf = (point: Point): number => series.reduce((sum, { value }) => sum + value(point), 0);
  const most = points.reduce((top, point) => Math.max(top, sumOf(point)), 0);
  const last = points.at(-1)?.at ?? 0;
  const first = Math.min(points[0]?.at ?? 0, last - (MIN_POINTS - 1) * POINT_MS);
  const slots = (last - first) / POINT_MS + 1;
  const step = WIDTH / slots;
  const bars =
    most === 0
      ? []
      : points.flatMap((point) => {
          let base = HEIGHT;
          return series.flatMap(({ tone, value }) => {
            const amount = value(point);
            if (amount === 0) return [];
            const height = Math.max(1.5, (amount / most) * (HEIGHT - 2));
            base -= height;
            const x = ((point.at - first) / POINT_MS) * step;
            const width = Math.max(0.5, step * 0.86);
            const tones = `tone-${tone}`;
            return html`<rect class=${tones} x=${x} y=${base} width=${width} height=${height} />`;
          });
        });
  const counted = headline === "now" ? points.slice(-1) : points;
  const head = show(counted.reduce((sum, point) => sum + sumOf(point), 0));
  const span = duration(last - first + POINT_MS);
  return html`<figure class="chart">
    <figcaption><span>${title}</span><strong>${head}</strong></figcaption>
    <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img"
      aria-label=${`${title}: ${headline} ${head}, at most ${show(most)} in the last ${span}`}>
      <line class="axis" x1="0" x2=${WIDTH} y1=${HEIGHT - 0.5} y2=${HEIGHT - 0.5} />
      ${bars}
    </svg>
    <div class="scale" aria-hidden="true">
      <span>${points.length > 0 ? time(first).slice(0, -3) : ""}</span>
      <span>${most > 0 ? `most ${show(most)}` : "none so far"}</span>
    </div>
    ${series.length > 1 && legend(series, points)}
  </figure>`;
}

function legend(series: readonly ChartPart[], points: readonly Point[]): Element {
  return html`<ul class="legend">
    ${series.map(({ label, tone, value }) => {
      const total = points.reduce((sum, point) => sum + value(point), 0);
      return html`<li><span class=${`swatch tone-${tone}`}></span>${label}: ${total}</li>`;
    })}
  </ul>`;
}
