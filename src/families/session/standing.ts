import { fits, joined, NO_LIMIT, VACANT } from "../../rules/fits.js";
import type { Entry, LockId, Obstacle, OwnEntry } from "./sequencer.js";

/** Whether a listed entry is that one: another may have the same id as one that left. */
export function isSame(listed: Entry, own: Pick<OwnEntry, "id" | "token">): boolean {
  return listed.id === own.id && (listed.token === own.token || listed.token === 0n);
}

export function isIn({ space, name }: LockId, { lock }: Pick<OwnEntry, "lock">): boolean {
  return lock.space === space && lock.name === name;
}

/**
 * How many entries from the head of the queue hold: the longest beginning that may hold together.
 * An entry that leaves only ever makes it longer, so an entry that holds goes on holding.
 */
export function holderCount(entries: readonly Entry[]): number {
  let held = VACANT;
  for (const entry of entries) {
    if (!fits(held, entry)) break;
    held = joined(held, entry);
  }
  return held.count;
}

/**
 * The only part of the queue whose change can let the first waiter of this process hold. Directly
 * behind the holders, that is any entry that leaves. Further behind, an exclusive waiter is blocked
 * by the entry before it, a shared waiter by the last exclusive entry before it. Where only weights
 * block a shared waiter, it has to know that the entry before it left, or that it holds now.
 */
export function obstacleOf(entries: readonly Entry[], index: number): Obstacle {
  const [own, before] = [entries[index], entries[index - 1]];
  if (!own || !before || holderCount(entries) >= index) return { type: "leaving" };
  if (own.mode === "exclusive") return { type: "entry", id: before.id, orWritten: false };
  const exclusive = entries.slice(0, index).findLast(({ mode }) => mode === "exclusive");
  if (exclusive) return { type: "entry", id: exclusive.id, orWritten: false };
  return { type: "entry", id: before.id, orWritten: true };
}

/**
 * Whether a waiter that holds now has to write so into its entry, because an entry behind it may
 * watch for that. An entry that comes later sees in the listing that this one holds. Without limits
 * no weight blocks an entry. `hadLimits`: there were limits in the queue when the waiter came; the
 * entries that had them may have left.
 */
export function mustTell(entries: readonly Entry[], index: number, hadLimits: boolean): boolean {
  const isLast = index === entries.length - 1;
  if (isLast || entries[index]?.mode === "exclusive") return false;
  return hadLimits || hasLimits(entries);
}

export function hasLimits(entries: readonly Entry[]): boolean {
  return entries.some(({ mode, limit }) => mode === "shared" && limit !== NO_LIMIT);
}
