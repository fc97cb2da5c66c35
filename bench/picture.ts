/** The parts of all pictures: page, colours, axis, and a figure with its spread. */

export const WIDTH = 760;
export const ROW = 26;
export const TOP = 84;
/** Figures stand in a column of their own, so that no line of the plot crosses one. */
export const RIGHT: number = WIDTH - 96;
/** Of our font, at its size: generous, so that no label is cut off. */
export const LETTER = 7.4;
const BAR = 16;
const FOOT = 34;
const LEGEND_LINE = 20;

/**
 * Readable on white and on black: it brings its own page, and follows the colour scheme. Those who
 * lock are told apart by pattern as well as by colour: full and hatched.
 */
const STYLE = `
  text { font: 13px system-ui, "DejaVu Sans", sans-serif; fill: #24292f; }
  .page { fill: #ffffff; }
  .title { font-weight: 600; font-size: 15px; }
  .note, .tick { fill: #57606a; font-size: 12px; }
  .holdfast { fill: #0969da; stroke: #0969da; }
  .peer { fill: url(#hatched); stroke: #6e7781; }
  .hatch { stroke: #8c959f; stroke-width: 3; }
  .axis { stroke: #d0d7de; }
  .spread { stroke: #24292f; stroke-width: 1.5; fill: none; }
  .halo { stroke: #ffffff; stroke-width: 4; fill: none; }
  .level { stroke: #bc4c00; stroke-width: 2; stroke-dasharray: 5 3; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .page { fill: #0d1117; } .note, .tick { fill: #9198a1; }
    .holdfast { fill: #4493f8; stroke: #4493f8; }
    .peer { stroke: #9198a1; } .hatch { stroke: #656c76; }
    .axis { stroke: #3d444d; }
    .level { stroke: #f0883e; }
    .spread { stroke: #e6edf3; } .halo { stroke: #0d1117; }
  }`;

const PATTERN =
  '<pattern id="hatched" width="6" height="6" patternUnits="userSpaceOnUse" ' +
  'patternTransform="rotate(45)"><rect class="page" width="6" height="6"/>' +
  '<line class="hatch" x1="0" y1="0" x2="0" y2="6"/></pattern>';

/** A sign of the legend with its meaning; it is drawn in the line of the legend, from `x`. */
export type Sign = readonly [meaning: string, draw: (x: number) => string];

export interface Head {
  readonly title: string;
  readonly note: string;
  readonly signs: readonly Sign[];
}

/**
 * A page with a head and rows, of which the first begins at `TOP`; where the legend has several
 * lines, all rows stand lower.
 */
export function picture({ title, note, signs }: Head, rows: number, body: string): string {
  const lines = legend(signs);
  const lower = (lines.length - 1) * LEGEND_LINE;
  const height = TOP + lower + rows * ROW + FOOT;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img">
<title>${escaped(title)}</title>
<style>${STYLE}
</style>
<defs>${PATTERN}</defs>
<rect class="page" width="${WIDTH}" height="${height}"/>
<text class="title" x="8" y="22">${escaped(title)}</text>
<text class="note" x="8" y="41">${escaped(note)}</text>
${lines.map((line, index) => below(index * LEGEND_LINE, line)).join("\n")}
${below(lower, body)}
</svg>
`;
}

export interface Scale {
  readonly ticks: readonly number[];
  x(value: number): number;
}

export function logarithmic(values: readonly number[], left: number): Scale {
  const first = Math.floor(Math.log10(Math.min(...values)) + 1e-9);
  const powers = Math.max(1, Math.ceil(Math.log10(Math.max(...values)) - 1e-9) - first);
  const x = (value: number): number =>
    left + ((RIGHT - left) * (Math.log10(value) - first)) / powers;
  const ticks = Array.from({ length: powers + 1 }, (_, index) => 10 ** (first + index));
  return { ticks, x };
}

/** The lines of the axis, and their figures below the rows. */
export function axis({ ticks, x }: Scale, rows: number, unit = ""): string {
  const bottom = TOP + rows * ROW;
  return ticks
    .map((value) => {
      const text = value >= 1 ? value.toLocaleString("en") : `${Number(value.toPrecision(3))}`;
      const at = `x="${x(value).toFixed(1)}" y="${bottom + 18}"`;
      const label = `<text class="tick" ${at} text-anchor="middle">${text}${unit}</text>`;
      return upright("axis", x(value), rows) + label;
    })
    .join("\n");
}

/** A line through all rows. */
export function upright(style: "axis" | "level", x: number, rows: number): string {
  const [at, bottom] = [x.toFixed(1), TOP + rows * ROW + 2];
  return `<line class="${style}" x1="${at}" y1="${TOP - 6}" x2="${at}" y2="${bottom}"/>`;
}

/** A label before a row, and the figure behind it. */
export function labels(name: string, figure: string, left: number, row: number): string {
  const y = TOP + row * ROW + 14;
  return [
    `<text x="${left - 8}" y="${y}" text-anchor="end">${escaped(name)}</text>`,
    `<text x="${WIDTH - 8}" y="${y}" text-anchor="end">${escaped(figure)}</text>`,
  ].join("");
}

/** On an axis of powers the length of a bar would say nothing: a dot only says where. */
export function dot(style: string, x: number, row: number): string {
  return `<circle class="${style}" cx="${x.toFixed(1)}" cy="${middleOf(row)}" r="6"/>`;
}

/** From one quartile to the other, with an end at each. */
export function spread(low: number, high: number, row: number): string {
  const [from, to, y] = [low.toFixed(1), high.toFixed(1), middleOf(row)];
  const path = `M${from} ${y}H${to}M${from} ${y - 4}v8M${to} ${y - 4}v8`;
  return `<path class="halo" d="${path}"/><path class="spread" d="${path}"/>`;
}

/** The meaning of each sign, from left to right below the note, in as many lines as it takes. */
function legend(signs: readonly Sign[]): readonly string[] {
  const lines = [""];
  let x = 8;
  for (const [meaning, draw] of signs) {
    const width = 24 + meaning.length * LETTER;
    if (x + width > WIDTH) {
      lines.push("");
      x = 8;
    }
    lines[lines.length - 1] +=
      `${draw(x)}<text class="note" x="${x + 24}" y="63">${meaning}</text>`;
    x += width + 16;
  }
  return lines;
}

function below(byY: number, body: string): string {
  return byY === 0 ? body : `<g transform="translate(0 ${byY})">${body}</g>`;
}

/** A piece of the legend that shows where figures are spread. */
export function spreadSign(x: number): string {
  return `<path class="spread" d="M${x} 58h18M${x} 54v8M${x + 18} 54v8"/>`;
}

function middleOf(row: number): number {
  return TOP + row * ROW + BAR / 2;
}

function escaped(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}
