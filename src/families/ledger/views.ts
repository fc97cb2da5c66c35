import type { HolderView, LockView, MarkView, Meta, WaiterView } from "../../contract/store.js";
import { NO_LIMIT } from "../../rules/fits.js";
import type { HolderEntry, MarkEntry, View, WaiterEntry } from "../../rules/ledger-command.js";
import { splitKey } from "../../rules/name.js";

/** Converts a view of the ledger, in microseconds and numbers, to milliseconds and `bigint`s. */
export function lockView(key: string, view: View): LockView {
  return {
    ...splitKey(key),
    holders: view.holders.map(holderView),
    waiters: view.waiters.map(waiterView),
    mark: view.mark && markView(view.mark),
  };
}

export function holderView(entry: HolderEntry): HolderView {
  const { token, mode, weight, limit, meta, heldUs, remainingUs } = entry;
  return {
    token: BigInt(token),
    mode,
    weight,
    limit: limit === NO_LIMIT ? null : limit,
    meta: parseMeta(meta),
    heldMs: heldUs / 1000,
    // The store may still list holders that have expired.
    remainingMs: Math.max(0, remainingUs / 1000),
  };
}

/**
 * How long until the store grants free locks again. A reply without a holder has a due time only if
 * the store waits for leases that it may have lost to expire.
 */
export function grantsInMs(reply: { holder: HolderEntry | null; dueUs: number }): number {
  return reply.holder ? 0 : Math.max(0, reply.dueUs / 1000);
}

export function markView({ token, meta, remainingUs }: MarkEntry): MarkView {
  return { token: BigInt(token), meta: parseMeta(meta), remainingMs: remainingUs / 1000 };
}

function waiterView({ mode, weight, limit, meta, waitedUs }: WaiterEntry): WaiterView {
  return {
    mode,
    weight,
    limit: limit === NO_LIMIT ? null : limit,
    meta: parseMeta(meta),
    waitedMs: waitedUs / 1000,
  };
}

/** Parses a meta. Another program may have written it, so text that is not an object is wrapped. */
function parseMeta(text: string): Meta {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Meta;
  } catch {}
  return { text };
}
