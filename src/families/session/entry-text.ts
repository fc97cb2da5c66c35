/**
 * The texts in entries and marks, which `inspect` and `list` show. Stores of this family do not
 * record times, so the owner of an entry writes the time of its wall clock into the text.
 */

import type { Meta } from "../../contract/store.js";
import { MetaText } from "../../rules/meta-text.js";

/** The content of the text in an entry. */
export interface EntryText {
  /** The `meta` of the claim. */
  readonly meta: Meta;
  /** The ttl of the claim; 0 if unknown. */
  readonly ttlMs: number;
  /** When the owner started to wait or, once it holds, to hold; by the owner's wall clock. */
  readonly sinceMs: number;
  /** The reason given to `revoke`, which writes it just before it removes the entry. */
  readonly revoked?: string;
}

const metaText = new MetaText();

export function entryText({ meta, ttlMs, sinceMs }: Omit<EntryText, "revoked">): string {
  return `{"meta":${metaText.of(meta)},"ttlMs":${ttlMs},"sinceMs":${sinceMs}}`;
}

/** Returns the text for an entry that has held the lock since `sinceMs`. */
export function heldText(text: string, sinceMs: number): string {
  return JSON.stringify({ ...readEntryText(text, sinceMs), sinceMs });
}

/** Returns the text for an entry that `revoke` is about to remove. */
export function revokedText(text: string, reason: string): string {
  return JSON.stringify({ ...readEntryText(text, 0), revoked: reason });
}

/** Parses the text of an entry. A foreign text, from another program, is returned as the meta. */
export function readEntryText(text: string | null, nowMs: number): EntryText {
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

/** Returns the text of a mark. `token` is the token of the entry that the mark replaces. */
export function markText(meta: Meta, token: bigint): string {
  return JSON.stringify({ meta, token: String(token) });
}

/** Returns the token in the text of a mark; null if the text has none. */
export function readMarkToken(text: string): bigint | null {
  try {
    return BigInt(JSON.parse(text).token);
  } catch {
    return null;
  }
}

function isObject(value: unknown): value is Record<string, unknown> & { meta: Meta } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
