import type { Standing } from "./contest.js";
import type { Result } from "./results.js";
import { figure } from "./table.js";

const WIDTH = 760;
const VALUE = 84;
const ROW = 26;
const BAR = 18;
const TOP = 84;
const FOOT = 34;
/** Of our font, at its size: generous, so that no label is cut off. */
const LETTER = 7.4;
/** Figures further apart than that are drawn by their powers of ten. */
const MOST_LINEAR = 30;

/**
 * Readable on white and on black: it brings its own page, and follows the colour scheme. Those who
 * lock are told apart by pattern as well as by colour: full, hatched, and outlined.
 */
const STYLE = `
  text { font: 13px system-ui, "DejaVu Sans", sans-serif; fill: #24292f; }
  .page { fill: #ffffff; }
  .title { font-weight: 600; font-size: 15px; }
  .note, .tick { fill: #57606a; font-size: 12px; }
  .holdfast { fill: #0969da; }
  .peer { fill: url(#hatched); stroke: #6e7781; }
  .hatch { stroke: #8c959f; stroke-width: 3; }
  .floor { fill: none; stroke: #1a7f37; stroke-width: 2; }
  .axis { stroke: #d0d7de; }
  .goal { stroke: #bc4c00; stroke-width: 2; stroke-dasharray: 5 3; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .page { fill: #0d1117; } .note, .tick { fill: #9198a1; }
    .holdfast { fill: #4493f8; } .peer { stroke: #9198a1; } .hatch { stroke: #656c76; }
    .floor { stroke: #3fb950; } .axis { stroke: #3d444d; } .goal { stroke: #f0883e; }
  }`;

const PATTERN =
  '<pattern id="hatched" width="6" height="6" patternUnits="userSpaceOnUse" ' +
  'patternTransform="rotate(45)"><line class="hatch" x1="0" y1="0" x2="0" y2="6"/></pattern>';

/** One result as a bar chart: a bar per contestant, those who failed named without one. */
export function chart({ question, standings, goals }: Result): string {
  const { store, title, unit, better } = question;
  const lines = goals.flatMap(({ line }) => (line && Number.isFinite(line) ? [line] : []));
  const medians = standings.filter((one) => one.failure === null).map((one) => one.median);
  const left = 24 + LETTER * Math.max(...standings.map(({ name }) => name.length));
  const scale = makeScale([...medians, ...lines], left, WIDTH - VALUE);
  const bottom = TOP + standings.length * ROW;
  const words = `${unit}, ${better} is better${scale.isLogarithmic ? ", logarithmic" : ""}`;
  const height = bottom + FOOT;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img">
<title>${escaped(`${store}: ${title}`)}</title>
<style>${STYLE}
</style>
<defs>${PATTERN}</defs>
<rect class="page" width="${WIDTH}" height="${height}"/>
<text class="title" x="8" y="22">${escaped(`${store}: ${title}`)}</text>
<text class="note" x="8" y="41">${escaped(words)}; medians of interleaved rounds</text>
${legend(standings, lines.length > 0)}
${scale.ticks.map((value) => tick(scale.x(value), value, bottom)).join("\n")}
${standings.map((one, index) => row(one, TOP + index * ROW, left, scale)).join("\n")}
${lines.map((value) => goal(scale.x(value), bottom)).join("\n")}
</svg>
`;
}

interface Scale {
  readonly isLogarithmic: boolean;
  readonly ticks: readonly number[];
  x(value: number): number;
}

function makeScale(values: readonly number[], left: number, right: number): Scale {
  const largest = Math.max(...values, Number.MIN_VALUE);
  const smallest = Math.min(...values);
  if (smallest > 0 && largest / smallest > MOST_LINEAR) {
    const first = Math.ceil(Math.log10(smallest)) - 1;
    const powers = Math.ceil(Math.log10(largest)) - first;
    const x = (value: number): number =>
      left + ((right - left) * (Math.log10(value) - first)) / powers;
    const ticks = Array.from({ length: powers + 1 }, (_, index) => 10 ** (first + index));
    return { isLogarithmic: true, ticks, x };
  }
  const power = 10 ** Math.floor(Math.log10(largest));
  const steps = [0.2, 0.5, 1, 2].map((part) => part * power);
  const step = steps.find((one) => largest / one <= 6) ?? power;
  const count = Math.ceil(largest / step - 1e-9);
  const ticks = Array.from({ length: count + 1 }, (_, index) => index * step);
  const x = (value: number): number => left + ((right - left) * value) / (count * step);
  return { isLogarithmic: false, ticks, x };
}

function row({ name, role, median, failure }: Standing, y: number, left: number, scale: Scale) {
  const label = `<text x="${left - 8}" y="${y + 14}" text-anchor="end">${escaped(name)}</text>`;
  if (failure !== null) {
    return `${label}<text class="note" x="${left + 6}" y="${y + 14}">failed</text>`;
  }
  const length = Math.max(2, scale.x(median) - left);
  const size = `width="${length.toFixed(1)}" height="${BAR}"`;
  return [
    label,
    `<rect class="${role}" x="${left}" y="${y}" ${size} rx="2"/>`,
    `<text x="${(left + length + 6).toFixed(1)}" y="${y + 14}">${figure(median)}</text>`,
  ].join("");
}

function tick(x: number, value: number, bottom: number): string {
  const at = x.toFixed(1);
  const text = value >= 1 ? value.toLocaleString("en") : `${Number(value.toPrecision(3))}`;
  return [
    `<line class="axis" x1="${at}" y1="${TOP - 6}" x2="${at}" y2="${bottom + 2}"/>`,
    `<text class="tick" x="${at}" y="${bottom + 18}" text-anchor="middle">${text}</text>`,
  ].join("");
}

function goal(x: number, bottom: number): string {
  const at = x.toFixed(1);
  return `<line class="goal" x1="${at}" y1="${TOP - 6}" x2="${at}" y2="${bottom + 2}"/>`;
}

/** What the bars and lines of this picture mean. */
function legend(standings: readonly Standing[], hasGoals: boolean): string {
  const roles = [...new Set(standings.map(({ role }) => role))];
  const titles = { holdfast: "Holdfast", peer: "other packages", floor: "floor: raw operations" };
  let x = 8;
  const place = (text: string, sign: string): string => {
    const item = `${sign}<text class="note" x="${x + 24}" y="63">${text}</text>`;
    x += 40 + text.length * LETTER;
    return item;
  };
  const items = roles.map((role) => {
    const swatch = `<rect class="${role}" x="${x}" y="53" width="18" height="11" rx="2"/>`;
    return place(titles[role], swatch);
  });
  if (hasGoals) {
    const at = `x1="${x + 9}" y1="51" x2="${x + 9}" y2="67"`;
    items.push(place("goal", `<line class="goal" ${at}/>`));
  }
  return items.join("");
}

function escaped(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}
