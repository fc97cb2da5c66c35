import type { Result } from "./results.js";
import { figure } from "./table.js";

const WIDTH = 760;
const LABEL = 210;
const VALUE = 120;
const ROW = 26;
const TOP = 58;

/** Readable on white and on black: the page that shows it decides, by its colour scheme. */
const STYLE = `
  text { font: 13px system-ui, sans-serif; fill: #24292f; }
  .title { font-weight: 600; font-size: 15px; }
  .note { fill: #57606a; font-size: 12px; }
  .holdfast { fill: #0969da; } .peer { fill: #8c959f; } .floor { fill: #2da44e; }
  .axis { stroke: #d0d7de; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .note { fill: #9198a1; }
    .holdfast { fill: #4493f8; } .peer { fill: #656c76; } .floor { fill: #3fb950; }
    .axis { stroke: #3d444d; }
  }`;

/** One result as a bar chart: a bar per contestant, those who failed named without one. */
export function chart({ question, standings }: Result): string {
  const { store, title, unit, better } = question;
  const values = standings.filter((one) => one.failure === null).map((one) => one.median);
  const largest = Math.max(...values);
  const smallest = Math.min(...values);
  const isLogarithmic = largest / smallest > 30;
  const room = WIDTH - LABEL - VALUE;
  const lengthOf = (value: number): number =>
    isLogarithmic
      ? room * (0.05 + (0.95 * Math.log(value / smallest)) / Math.log(largest / smallest))
      : (room * value) / largest;
  const rows = standings.map((one, index) => {
    const y = TOP + index * ROW;
    const at = `x="${LABEL - 8}" y="${y + 14}" text-anchor="end"`;
    const label = `<text ${at}>${escaped(one.name)}</text>`;
    if (one.failure !== null) {
      return `${label}<text class="note" x="${LABEL + 6}" y="${y + 14}">failed</text>`;
    }
    const length = Math.max(2, lengthOf(one.median)).toFixed(1);
    const end = LABEL + Number(length) + 6;
    return [
      label,
      `<rect class="${one.role}" x="${LABEL}" y="${y}" width="${length}" height="18" rx="2"/>`,
      `<text x="${end}" y="${y + 14}">${figure(one.median)}</text>`,
    ].join("");
  });
  const height = TOP + standings.length * ROW + 10;
  const scale = isLogarithmic ? ", logarithmic" : "";
  const note = `${unit}, ${better} is better${scale}; medians of interleaved rounds`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img">
<title>${escaped(`${store}: ${title}`)}</title>
<style>${STYLE}
</style>
<text class="title" x="8" y="22">${escaped(`${store}: ${title}`)}</text>
<text class="note" x="8" y="41">${escaped(note)}</text>
<line class="axis" x1="${LABEL}" y1="${TOP - 6}" x2="${LABEL}" y2="${height - 8}"/>
${rows.join("\n")}
</svg>
`;
}

function escaped(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}
