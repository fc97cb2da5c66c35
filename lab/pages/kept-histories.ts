/** The recorded histories, which the pages are made of: one line of JSON each. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isExpected } from "../expected.js";
import type { Entry, History } from "../history.js";
import { subjects } from "../subjects/all.js";
import { fileOf } from "./matrix-page.js";

/** The histories of the last runs: the lab writes a file for each trial. */
export function historiesIn(folder: string): History[] {
  const files = existsSync(folder) ? readdirSync(folder).sort() : [];
  return files
    .filter((file) => file.endsWith(".json"))
    .map((file) => JSON.parse(readFileSync(join(folder, file), "utf8")));
}

export function recordedIn(file: string): History[] {
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

/**
 * Records histories in the file and returns those that it refuses: an unexpected verdict is a bug
 * in a store or in the lab. A busy machine makes leases longer, and with them every time of the
 * trial: such a history does not replace one with shorter leases.
 */
export function record(histories: readonly History[], file: string): History[] {
  const kept = new Map(recordedIn(file).map((one) => [fileOf(one), one]));
  const refused = histories.filter((one) => !isAsExpected(one));
  for (const history of histories) {
    const ttlMs = kept.get(fileOf(history))?.ttlMs ?? Number.POSITIVE_INFINITY;
    if (isAsExpected(history) && history.ttlMs <= ttlMs) kept.set(fileOf(history), history);
  }
  const lines = [...kept].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => lineOf(one));
  writeFileSync(file, lines.join(""));
  return refused;
}

/** Of other packages nothing is expected: their pages say what was seen. */
export function isAsExpected({ subject, fault, verdict }: History): boolean {
  const family = subjects.find(({ id }) => id === subject)?.family;
  return family === "peer" || isExpected(subject, fault, verdict);
}

/** Times are rounded to a tenth of a millisecond. */
function lineOf({ entries, ...head }: History): string {
  const rounded = (value: number): number => Math.round(value * 10) / 10;
  const short = withoutRepeats(entries).map((one) => ({ ...one, atMs: rounded(one.atMs) }));
  const durationMs = rounded(head.durationMs);
  return `${JSON.stringify({ ...head, durationMs, entries: short })}\n`;
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
