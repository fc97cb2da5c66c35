import { bestOf, type Goal, type Question, type Standing } from "./contest.js";

/** The standings as text: median, spread, and how many times better than floor and best peer. */
export function table(question: Question, standings: readonly Standing[]): string {
  const floorOf = ({ floor }: Standing): Standing | undefined =>
    standings.find(({ name, role }) => (floor ? name === floor : role === "floor"));
  const peer = bestOf("peer", question.better, standings);
  const extra = [...new Set(standings.flatMap(({ more }) => Object.keys(more)))];
  const head = ["", question.unit, "±", "× floor", "× best peer", ...extra];
  const rows = standings.map((one) => {
    if (one.failure !== null) return [one.name, `failed: ${one.failure}`];
    return [
      one.name,
      figure(one.median),
      `${Math.round(one.spread * 100)} %`,
      figure(one.median / (floorOf(one)?.median ?? Number.NaN)),
      figure(one.median / peer.median),
      ...extra.map((key) => figure(one.more[key])),
    ];
  });
  const widths = head.map((_, column) =>
    Math.max(...[head, ...rows].map((row) => (row.length > 2 ? (row[column] ?? "").length : 0))),
  );
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell[column === 0 ? "padEnd" : "padStart"](widths[column] ?? 0))
      .join("  ");
  return [head, ...rows].map(line).join("\n");
}

export function goalLines(goals: readonly Goal[]): string {
  return goals
    .map(
      ({ text, value, isMet }) =>
        `${isMet ? "met   " : "MISSED"}  ${text}: ${figure(value) || "no figure"}`,
    )
    .join("\n");
}

export function figure(value: number | undefined): string {
  if (value === undefined || Number.isNaN(value)) return "";
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return value >= 1000 ? Math.round(value).toLocaleString("en") : value.toPrecision(3);
}
