import { bestOf, type Goal, type Question, type Standing } from "./contest.js";

/** The part of a question that its table needs. */
type Asked = Pick<Question, "unit" | "better">;

/** The head of a table, and a row for each contestant; the row of one without figures says why. */
export function rowsOf(question: Asked, standings: readonly Standing[]): readonly string[][] {
  const peer = bestOf("peer", question.better, standings);
  const extra = [...new Set(standings.flatMap(({ more }) => Object.keys(more)))];
  const head = ["contestant", question.unit, "spread", "× floor", "× best peer", ...extra];
  const rows = standings.map((one) => {
    if (one.failure !== null) return [one.name, `${fateOf(one)}: ${one.failure}`];
    return [
      one.name,
      figure(one.median),
      `${Math.round(one.spread * 100)} %`,
      figure(timesFloor(one, standings)),
      figure(one.median / peer.median),
      ...extra.map((key) => figure(one.more[key])),
    ];
  });
  return [head, ...rows];
}

/** A word for a contestant without figures. */
export function fateOf({ isSkipped }: Standing): "failed" | "skipped" {
  return isSkipped ? "skipped" : "failed";
}

/** A figure as a multiple of the raw operations in the same language; NaN where there are none. */
export function timesFloor({ median, floor }: Standing, standings: readonly Standing[]): number {
  const raw = standings.find(({ name, role }) => (floor ? name === floor : role === "floor"));
  return median / (raw?.median ?? Number.NaN);
}

/** The standings as text: median, spread, and how many times better than floor and best peer. */
export function table(question: Asked, standings: readonly Standing[]): string {
  const rows = rowsOf(question, standings);
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row.length > 2 ? (row[column] ?? "").length : 0))),
  );
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell[column === 0 ? "padEnd" : "padStart"](widths[column] ?? 0))
      .join("  ");
  return rows.map(line).join("\n");
}

/** The same rows in Markdown. */
export function markdown(rows: readonly (readonly string[])[]): string {
  const [head = []] = rows;
  const line = (cells: readonly string[]): string =>
    `| ${head.map((_, column) => cells[column] ?? "").join(" | ")} |`;
  const [first = "", ...others] = rows.map(line);
  return [first, line(["---", ...head.slice(1).map(() => "---:")]), ...others].join("\n");
}

export function goalLines(goals: readonly Goal[]): string {
  return goals
    .map(
      ({ text, value, isMet }) =>
        `${isMet ? "met   " : "MISSED"}  ${text}: ${figure(value) || "no figure"}`,
    )
    .join("\n");
}

/** A figure that could not be had is null in kept results, which are JSON. */
export function figure(value: number | null | undefined): string {
  if (value === undefined || value === null || Number.isNaN(value)) return "";
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return value >= 1000 ? Math.round(value).toLocaleString("en") : value.toPrecision(3);
}
