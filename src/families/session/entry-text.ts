/**
 * The texts in entries and marks, for people and programs that ask about a lock. A store of this
 * family keeps no time of its own, so the owner of an entry writes its own wall clock into it.
 */

import type { Meta } from "../../contract/store.js";
import { MetaText } from "../../rules/meta-text.js";

/** The content of the text in an entry. */
export interface EntryText {
  /** As the claim has it. */
  readonly meta: Meta;
  /** As the claim has it; 0 where it is not known. */
  readonly ttlMs: number;
  /** By the wall clock of the owner: since when it waits or, once it holds, since when it holds. */
  readonly sinceMs: number;
  /** The reason of a revoke, which is about to remove the entry. */
  readonly revoked?: string;
}

const metaText = new MetaText();

export function entryText({ meta, ttlMs, sinceMs }: Omit<EntryText, "revoked">): string {
  return `{"meta":${metaText.of(meta)},"ttlMs":${ttlMs},"sinceMs":${sinceMs}}`;
}

/** The same text, of an entry that holds since `sinceMs`. */
export function heldText(text: string, sinceMs: number): string {
  return JSON.stringify({ ...readEntryText(text, sinceMs), sinceMs });
}

/** The same text, of an entry that a revoke is about to remove. */
export function revokedText(text: string, reason: string): string {
  return JSON.stringify({ ...readEntryText(text, 0), revoked: reason });
}

/** Other programs write entries, too: a text that is not ours becomes a meta of its own. */
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

/** The text of a mark. `token` is that of the entry which the mark replaces. */
export function markText(meta: Meta, token: bigint): string {
  return JSON.stringify({ meta, token: String(token) });
}

/** The token in the text of a mark; null where the text has none. */
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
