import type { LockView } from "../contract/store.js";
import { formatDuration } from "./duration.js";
import { textOf, whoIs } from "./holder-text.js";

const HEADINGS = ["NAME", "KIND", "HOLDER", "HELD", "TOKEN", "WAITING", "REASON"] as const;

/** A row for each holder, and one row for a name without holders (a mark, or only waiters). */
export function lockTable(views: readonly LockView[]): string[] {
  const rows = views.flatMap(rowsOf);
  const widths = HEADINGS.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => (row[column] ?? "").length)),
  );
  return [HEADINGS, ...rows].map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}

function rowsOf(view: LockView): string[][] {
  const { holders, waiters, mark } = view;
  const { name } = view;
  const waiting = waiters.length === 0 ? "" : String(waiters.length);
  const rows = holders.map(({ meta, heldMs, token }) => [
    name,
    kindOf(view),
    whoIs(meta),
    formatDuration(heldMs),
    String(token),
    waiting,
    meta.reason === undefined ? "" : textOf(meta.reason),
  ]);
  if (rows.length > 0) return rows;
  const who = mark ? `done by ${whoIs(mark.meta)}` : "-";
  const left = mark ? `${formatDuration(mark.remainingMs)} left` : "";
  return [[name, kindOf(view), who, left, mark ? String(mark.token) : "", waiting, ""]];
}

export function kindOf({ space, holders }: LockView): string {
  if (space !== "lock") return space;
  const [holder] = holders;
  if (!holder || holder.mode === "exclusive") return "lock";
  return holder.limit === null ? "shared" : `slots ${holders.length}/${holder.limit}`;
}
