/**
 * At the end the store is empty and the programs have no timers. And no ghosts: an owner whose
 * release the store has executed never queues or holds again, where clients know of every copy of a
 * request.
 */
import type { Entry } from "../history.js";
import type { Violation } from "./violation.js";

export function checkLeftovers(entries: readonly Entry[]): Violation[] {
  return entries.flatMap((entry) => {
    if (entry.type !== "left") return [];
    const { what, count, atMs } = entry;
    const message = `at the end there are ${what}: ${count}`;
    return [{ checker: "leftovers", message, name: null, fromMs: atMs, toMs: atMs }];
  });
}

export function checkGhosts(entries: readonly Entry[]): Violation[] {
  const ended = new Map<string, number>();
  const violations: Violation[] = [];
  for (const entry of entries) {
    // By a clock that was set back a late request is in time again, and its tombstone is gone.
    if (entry.type === "forgot" || (entry.type === "stepped" && entry.byMs < 0)) ended.clear();
    if (entry.type === "withdrawn") ended.set(entry.owner, entry.atMs);
    if (entry.type !== "granted" && entry.type !== "queued") continue;
    const { owner, name, type, atMs } = entry;
    const endedMs = ended.get(owner);
    if (endedMs === undefined) continue;
    const message = `${owner} had ended, and was ${type} for "${name}" afterwards`;
    violations.push({ checker: "ghosts", message, name, fromMs: endedMs, toMs: atMs });
  }
  return violations;
}
