import { NO_LIMIT } from "../../rules/fits.js";
import type { HolderView, LockView, MarkView, Meta, WaiterView } from "../../store.js";
import type { Entry, Listing, Mark, Place } from "./sequencer.js";
import { holderCount } from "./standing.js";

/** What an entry says of itself. The store keeps no time, so its owner's wall clock has to do. */
interface EntryText {
  readonly meta: Meta;
  readonly ttlMs: number;
  readonly sinceMs: number;
  /** Somebody ended it, for this reason; it is about to be deleted. */
  readonly revoked?: string;
}

export function lockView(
  place: Place,
  { entries, mark }: Listing,
  nowMs: number,
  remainingMs: (session: string) => number,
): LockView {
  const holders = holderCount(entries);
  return {
    ...place,
    holders: entries
      .slice(0, holders)
      .map((entry) => holderView(entry, nowMs, remainingMs(entry.session))),
    waiters: entries.slice(holders).map((entry) => waiterView(entry, nowMs)),
    mark: mark && markView(mark, remainingMs(mark.session)),
  };
}

/** Without a better word on how long it will be kept, its ttl is the most it can be. */
export function holderView(entry: Entry, nowMs: number, remainingMs?: number): HolderView {
  const { order, mode, weight } = entry;
  const { meta, sinceMs, ttlMs } = readText(entry.text, nowMs);
  const heldMs = Math.max(0, nowMs - sinceMs);
  return {
    token: order,
    mode,
    weight,
    limit: limitView(entry),
    meta,
    heldMs,
    remainingMs: remainingMs === undefined ? ttlMs : Math.min(remainingMs, ttlMs || remainingMs),
  };
}

export function markView({ token, text }: Mark, remainingMs = 0): MarkView {
  return { token, meta: readText(text, 0).meta, remainingMs };
}

function waiterView(entry: Entry, nowMs: number): WaiterView {
  const { mode, weight } = entry;
  const { meta, sinceMs } = readText(entry.text, nowMs);
  return { mode, weight, limit: limitView(entry), meta, waitedMs: Math.max(0, nowMs - sinceMs) };
}

function limitView({ limit }: Entry): number | null {
  return limit === NO_LIMIT ? null : limit;
}

const metaTexts = new WeakMap<Meta, string>();

/** As `readText` reads it; most entries of a process say the same of it. */
export function writeText({ meta, ttlMs, sinceMs }: Omit<EntryText, "revoked">): string {
  let metaText = metaTexts.get(meta);
  if (metaText === undefined) {
    metaText = JSON.stringify(meta);
    metaTexts.set(meta, metaText);
  }
  return `{"meta":${metaText},"ttlMs":${ttlMs},"sinceMs":${sinceMs}}`;
}

/** Other programs write here too: what is not ours is shown, not thrown. */
export function readText(text: string | null, nowMs: number): EntryText {
  try {
    const value = JSON.parse(text ?? "");
    if (isObject(value) && isObject(value.meta)) {
      const { meta, ttlMs, sinceMs, revoked } = value;
      const known = { meta, ttlMs: Number(ttlMs) || 0, sinceMs: Number(sinceMs) || nowMs };
      return typeof revoked === "string" ? { ...known, revoked } : known;
    }
  } catch {}
  return { meta: text ? { text } : {}, ttlMs: 0, sinceMs: nowMs };
}

function isObject(value: unknown): value is Record<string, unknown> & { meta: Meta } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
