import type { Occupancy } from "../../rules/fits.js";
import type { Holder, Mark, Waiter } from "../../rules/ledger-state.js";

/** A mark as it is kept: with its end by the wall clock, by which it survives a restart. */
export interface KeptMark extends Mark {
  readonly untilWallUs: number;
}

/** A client that waits at a name. */
export interface KeptClient {
  readonly id: string;
  touchUs: number;
  goneUs: number;
  suspect: boolean;
}

/**
 * The content of the row of a name. A few holders and waiters stand in it whole, so that a lock in
 * everyday use is one row; many have rows of their own, and only their sum is here. Absent fields
 * are not written.
 */
export interface NameRecord {
  /** In the order of their tokens. An exclusive holder is always here. */
  holders?: Holder[] | undefined;
  /** In sum, the holders that have rows of their own. */
  holderRows?: Occupancy | undefined;
  /** In the order of the queue. */
  waiters?: Waiter[] | undefined;
  clients?: KeptClient[] | undefined;
  /** In sum, the waiters that have rows of their own. */
  waiterRows?: WaiterSum | undefined;
  mark?: KeptMark | undefined;
  /** How many tombstones there are, and a time before which none ends. */
  tombstones?: { count: number; untilUs: number } | undefined;
}

export interface WaiterSum {
  count: number;
  nextPlace: number;
  /** Before this time no client is silent. */
  silentUs: number;
}

/** Beyond so many, holders or waiters of a name get rows of their own. */
export const MOST_INLINE = 8;

/** The name's place in the tables. */
export type Here = readonly [space: number, key: string];

/** The only holder of a name where nothing else is to be remembered. */
export function soleHolder(record: NameRecord): Holder | null {
  if (record.holders?.length !== 1 || isMoreThanHeld(record)) return null;
  return record.holders[0] ?? null;
}

/** Whether nothing is left to remember. */
export function isAtRest(record: NameRecord): boolean {
  return !(record.holders?.length || isMoreThanHeld(record));
}

/** Whether there is more to remember than holders in the row. */
function isMoreThanHeld(record: NameRecord): boolean {
  return Boolean(
    record.holderRows ||
      record.waiters?.length ||
      record.waiterRows ||
      record.mark ||
      record.tombstones,
  );
}

/** SQLite's texts end at a NUL: it is written in two other characters, in the same order. */
export function toText(key: string): string {
  if (!key.includes("\0") && !key.includes("\u0001")) return key;
  return key.replaceAll("\u0001", "\u0001\u0002").replaceAll("\0", "\u0001\u0001");
}

export function fromText(text: string): string {
  return text.replaceAll("\u0001\u0001", "\0").replaceAll("\u0001\u0002", "\u0001");
}
