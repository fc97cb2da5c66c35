/** The histories that the pages are made of: a file of JSON for each, in docs/lab. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isExpected } from "../expected.js";
import type { Entry, History } from "../history.js";
import { subjects } from "../subjects/all.js";
import { fileOf } from "./matrix-page.js";

export function historiesIn(folder: string): History[] {
  const files = existsSync(folder) ? readdirSync(folder).sort() : [];
  return files
    .filter((file) => file.endsWith(".json"))
    .map((file) => JSON.parse(readFileSync(join(folder, file), "utf8")));
}

/**
 * Keeps histories in the folder, and gives those that it refuses: a verdict that is not the
 * expected one is a bug of a store or of the lab, and no page. A busy machine makes leases longer,
 * and with them every time of the trial: such a history does not replace one with shorter leases.
 */
export function keep(histories: readonly History[], folder: string): History[] {
  mkdirSync(folder, { recursive: true });
  const kept = new Map(historiesIn(folder).map((one) => [fileOf(one), one.ttlMs]));
  return histories.filter((history) => {
    if (!isAsExpected(history)) return true;
    const isLonger = history.ttlMs > (kept.get(fileOf(history)) ?? Number.POSITIVE_INFINITY);
    if (!isLonger) writeFileSync(join(folder, `${fileOf(history)}.json`), textOf(history));
    return false;
  });
}

/** Of other packages nothing is expected: their pages say what was seen. */
export function isAsExpected({ subject, fault, verdict }: History): boolean {
  const family = subjects.find(({ id }) => id === subject)?.family;
  return family === "peer" || isExpected(subject, fault, verdict);
}

/** A line for each entry, with times to a tenth of a millisecond. */
function textOf({ entries, ...head }: History): string {
  const rounded = (value: number): number => Math.round(value * 10) / 10;
  const lines = withoutRepeats(entries).map((entry) =>
    JSON.stringify({ ...entry, atMs: rounded(entry.atMs) }),
  );
  const top = JSON.stringify({ ...head, durationMs: rounded(head.durationMs) }, null, 1);
  return `${top.replace(/\n}$/, "")},\n "entries": [\n  ${lines.join(",\n  ")}\n ]\n}\n`;
}

/** A program that is refused for the same reason thousands of times is shown once. */
export function withoutRepeats(entries: readonly Entry[]): Entry[] {
  const reasons = new Map<string, string>();
  const dropped = new Set<Entry>();
  const asked = new Map<string, Entry>();
  for (const entry of entries) {
    if (entry.type === "asks") asked.set(entry.lane, entry);
    if (entry.type !== "refused") continue;
    const ask = asked.get(entry.lane);
    if (reasons.get(entry.lane) === entry.why && ask) dropped.add(ask).add(entry);
    reasons.set(entry.lane, entry.why);
  }
  return entries.filter((entry) => !dropped.has(entry));
}
