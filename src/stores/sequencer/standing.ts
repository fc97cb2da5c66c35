import { fits, joined, NO_LIMIT, VACANT } from "../../rules/fits.js";
import type { Entry, Watched } from "./sequencer.js";

/**
 * How many entries from the head of the line hold: the longest compatible beginning. What leaves
 * the line only ever makes it longer, so whoever holds goes on holding until it leaves.
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
 * What the first waiting entry of this process has to be told about; nothing else can let it hold.
 * The next in line waits for any holder. Of the others, an exclusive one waits for its predecessor,
 * a shared one for the last exclusive before it. Where only weights are in the way, it waits for
 * the one before: that it leaves, or that it holds now.
 */
export function obstacleOf(
  entries: readonly Entry[],
  index: number,
): Exclude<Watched, { readonly type: "own" }> {
  if (holderCount(entries) >= index) return { type: "leaving" };
  const own = entries[index] as Entry;
  const before = entries[index - 1] as Entry;
  if (own.mode === "exclusive") return { type: "entry", id: before.id, orWritten: false };
  const exclusive = entries.slice(0, index).findLast(({ mode }) => mode === "exclusive");
  if (exclusive) return { type: "entry", id: exclusive.id, orWritten: false };
  return { type: "entry", id: before.id, orWritten: true };
}

/**
 * Whether a waiter that holds now has to say so: an entry behind it may wait for just that. An
 * entry that comes later sees from the line alone that it holds. Without limits weights stop no
 * entry; `hadLimits` tells whether there were any when the waiter came, for they may have left.
 */
export function mustTell(entries: readonly Entry[], index: number, hadLimits: boolean): boolean {
  const isLast = index === entries.length - 1;
  if (isLast || entries[index]?.mode === "exclusive") return false;
  return hadLimits || hasLimits(entries);
}

export function hasLimits(entries: readonly Entry[]): boolean {
  return entries.some(({ mode, limit }) => mode === "shared" && limit !== NO_LIMIT);
}
