/**
 * What a node's script may answer, read strictly: whatever stands between this client and the
 * script may answer something else. The readers throw a `StoreError`; a poll takes that as the
 * failure of one node.
 */
import { StoreError } from "../../errors.js";

/** Throws where an answer is no list. */
export function listOf(raw: unknown): readonly unknown[] {
  if (Array.isArray(raw)) return raw;
  throw unexpected(raw);
}

/** Throws where it is no whole number: one that is not would spread into ballots and deadlines. */
export function wholeOf(value: unknown): number {
  const number = typeof value === "string" && /^-?\d+$/.test(value) ? Number(value) : value;
  if (Number.isSafeInteger(number)) return number as number;
  throw unexpected(value);
}

export function unexpected(value: unknown): StoreError {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? String(value));
  const start = text.length > 60 ? `${text.slice(0, 57)}...` : text;
  return new StoreError(`It gave an answer that is none of its script: ${start}.`, {
    outcome: "unknown",
    store: "redlock",
  });
}
