/**
 * At the end the store is empty and the programs have no timers. And no ghosts: an owner whose
 * release the store has executed never queues or holds again, where clients know of every copy of a
 * request.
 */
import type { Entry, EntryOf } from "../history.js";
import { CLOCK_TOLERANCE } from "./store-account.js";
import type { Violation } from "./violation.js";

export function checkLeftovers(entries: readonly Entry[]): Violation[] {
  return entries.flatMap((entry) => {
    if (entry.type !== "left") return [];
    const { what, count, atMs } = entry;
    const message = `at the end there are ${what}: ${count}`;
    return [{ checker: "leftovers", message, name: null, fromMs: atMs, toMs: atMs }];
  });
}

interface Ended {
  readonly atMs: number;
  /** A copy of a request of this owner may still arrive: the client knows of it. */
  readonly mayStillArrive: boolean;
  /** Until when the tombstone stays; from then on a copy is too late. */
  untilMs: number;
}

/**
 * Excused is an owner of whose request a copy may come, while no tombstone keeps it away: the
 * store forgot the tombstone, or its clock was set back after the tombstone had ended, so that the
 * copy is in time again. Where the network makes copies that no client knows of (`hasStrays`), only
 * an owner with a tombstone must stay away.
 */
export function checkGhosts(entries: readonly Entry[], hasStrays = false): Violation[] {
  const owners = new Map<string, Ended>();
  const violations: Violation[] = [];
  for (const entry of entries) {
    if (entry.type === "forgot") dropExcused(owners, Number.POSITIVE_INFINITY);
    if (entry.type === "stepped") step(owners, entry);
    if (entry.type === "withdrawn") {
      const { owner, atMs, buriedMs } = entry;
      const ended = {
        atMs,
        mayStillArrive: buriedMs !== 0,
        untilMs: atMs + buriedMs / CLOCK_TOLERANCE,
      };
      if (buriedMs > 0 || !hasStrays) owners.set(owner, ended);
    }
    if (entry.type !== "granted" && entry.type !== "queued") continue;
    const { owner, name, type, atMs } = entry;
    const ended = owners.get(owner);
    if (!ended) continue;
    const message = `${owner} had ended, and was ${type} for "${name}" afterwards`;
    violations.push({ checker: "ghosts", message, name, fromMs: ended.atMs, toMs: atMs });
  }
  return violations;
}

function step(owners: Map<string, Ended>, { atMs, byMs }: EntryOf<"stepped">): void {
  if (byMs < 0) return dropExcused(owners, atMs);
  for (const ended of owners.values()) ended.untilMs -= byMs;
}

function dropExcused(owners: Map<string, Ended>, beforeMs: number): void {
  for (const [owner, { mayStillArrive, untilMs }] of owners) {
    if (mayStillArrive && untilMs <= beforeMs) owners.delete(owner);
  }
}
