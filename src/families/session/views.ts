import type { HolderView, LockView, MarkView, WaiterView } from "../../contract/store.js";
import { NO_LIMIT } from "../../rules/fits.js";
import { readEntryText } from "./entry-text.js";
import type { Entry, ListedMark, Listing, LockId, Sequencer } from "./sequencer.js";
import { holderCount } from "./standing.js";

/** Returns the state of a lock, including how long the store keeps its holders and its mark. */
export async function lockView(
  lock: LockId,
  { entries, mark }: Listing,
  sequencer: Sequencer,
  limitMs: number,
): Promise<LockView> {
  const count = holderCount(entries);
  const holders = entries.slice(0, count);
  const kept = [...holders, ...(mark ? [mark] : [])];
  const remainingMs = await sequencer.remainingMs(kept, limitMs);
  const nowMs = sequencer.runtime.clock.wallUs() / 1000;
  return {
    ...lock,
    holders: holders.map((entry, index) => holderView(entry, nowMs, remainingMs[index])),
    waiters: entries.slice(count).map((entry) => waiterView(entry, nowMs)),
    mark: mark && markView(mark, remainingMs[count]),
  };
}

/** If the store does not give `remainingMs`, uses the ttl in the text as the upper bound. */
export function holderView(entry: Entry, nowMs: number, remainingMs?: number): HolderView {
  const { token, mode, weight } = entry;
  const { meta, sinceMs, ttlMs } = readEntryText(entry.text, nowMs);
  const heldMs = Math.max(0, nowMs - sinceMs);
  return {
    token,
    mode,
    weight,
    limit: limitView(entry),
    meta,
    heldMs,
    remainingMs: remainingMs === undefined ? ttlMs : Math.min(remainingMs, ttlMs || remainingMs),
  };
}

export function markView({ token, text }: ListedMark, remainingMs = 0): MarkView {
  return { token, meta: readEntryText(text, 0).meta, remainingMs };
}

function waiterView(entry: Entry, nowMs: number): WaiterView {
  const { mode, weight } = entry;
  const { meta, sinceMs } = readEntryText(entry.text, nowMs);
  return { mode, weight, limit: limitView(entry), meta, waitedMs: Math.max(0, nowMs - sinceMs) };
}

function limitView({ limit }: Entry): number | null {
  return limit === NO_LIMIT ? null : limit;
}
