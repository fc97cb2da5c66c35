import { fits, joined, NO_LIMIT, VACANT } from "../../rules/fits.js";
import type { Entry, LockId, Obstacle, OwnEntry } from "./sequencer.js";

/** Whether a listed entry is our own. The id alone is not enough: stores may reuse ids. */
export function isSame(listed: Entry, own: Pick<OwnEntry, "id" | "token">): boolean {
  return listed.id === own.id && (listed.token === own.token || listed.token === 0n);
}

export function isIn({ space, name }: LockId, { lock }: Pick<OwnEntry, "lock">): boolean {
  return lock.space === space && lock.name === name;
}

/**
 * Counts the entries that hold the lock: the longest run from the head of the queue whose entries
 * may hold it together. When an entry leaves, no other holder stops holding.
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
 * What the first waiter of this process has to watch. Directly behind the holders, any entry that
 * leaves may let it hold. Further back, an exclusive waiter watches the entry before it, and a
 * shared waiter the last exclusive entry before it. A shared waiter that only weights block watches
 * for the entry before it to leave, or to write that it holds now.
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
 * Whether a waiter that now holds the lock must write this into its entry, because an entry behind
 * it may be watching for that. Entries that join later see it in the listing. Without limits, no
 * entry is blocked by weights. `hadLimits`: the queue had limits when the waiter joined, and the
 * entries that had them may have left since.
 */
export function mustTell(entries: readonly Entry[], index: number, hadLimits: boolean): boolean {
  const isLast = index === entries.length - 1;
  if (isLast || entries[index]?.mode === "exclusive") return false;
  return hadLimits || hasLimits(entries);
}

export function hasLimits(entries: readonly Entry[]): boolean {
  return entries.some(({ mode, limit }) => mode === "shared" && limit !== NO_LIMIT);
}
