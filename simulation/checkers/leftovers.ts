/**
 * Nothing stays behind: at the end the store is empty and the programs have no timers. And no
 * ghosts: an owner whose release the store has executed never queues or holds again, where every
 * copy of a request is one that its client knew to expect.
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
    // What was too late is not, by a clock that was set back, and its tombstone is gone.
    if (entry.type === "forgot" || (entry.type === "stepped" && entry.byMs < 0)) ended.clear();
    if (entry.type === "withdrawn") ended.set(entry.owner, entry.atMs);
    if (entry.type !== "granted" && entry.type !== "queued") continue;
    const { owner, name, type, atMs } = entry;
    const endedMs = ended.get(owner);
    if (endedMs === undefined) continue;
    const message = `${owner} had ended, and was ${type} for "${name}" all the same`;
    violations.push({ checker: "ghosts", message, name, fromMs: endedMs, toMs: atMs });
  }
  return violations;
}
