import { describe, type Entry } from "../history.js";

/** A part of a history that breaks a promise. */
export interface Violation {
  readonly checker: string;
  readonly message: string;
  /** The name of the lock it is about; null where it is about no single one. */
  readonly name: string | null;
  /** The part of the history that shows it. */
  readonly fromMs: number;
  readonly toMs: number;
}

const AROUND_MS = 50;
const MAX_LINES = 80;

/** The lines of the history that show a violation. */
export function sliceOf(entries: readonly Entry[], violation: Violation): string[] {
  const { name, fromMs, toMs } = violation;
  const leases = new Set(
    entries.flatMap((entry) =>
      "name" in entry && "lease" in entry && entry.name === name ? [entry.lease] : [],
    ),
  );
  const isAbout = (entry: Entry): boolean => {
    if (name === null) return true;
    if ("name" in entry) return entry.name === name;
    return !("lease" in entry) || leases.has(entry.lease);
  };
  const lines = entries
    .filter(({ atMs }) => atMs >= fromMs - AROUND_MS && atMs <= toMs + AROUND_MS)
    .filter(isAbout)
    .map(describe);
  if (lines.length <= MAX_LINES) return lines;
  const half = MAX_LINES / 2;
  return [
    ...lines.slice(0, half),
    `... ${lines.length - MAX_LINES} more ...`,
    ...lines.slice(-half),
  ];
}
