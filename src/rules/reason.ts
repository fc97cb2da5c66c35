import { isWellFormed } from "./name.js";

export const MAX_REASON_BYTES = 1_024;

/** Says which rule the reason of a revocation breaks, or null when it is fine. */
export function reasonProblem(reason: unknown): string | null {
  if (typeof reason !== "string" || reason === "") return "must say why: the holder reads it";
  if (!isWellFormed(reason)) return "must be well-formed unicode";
  if (Buffer.byteLength(reason) <= MAX_REASON_BYTES) return null;
  return `must have at most ${MAX_REASON_BYTES} bytes`;
}

/** The part of a text from a store that fits: another client may have stored a longer one. */
export function cutReason(text: string): string {
  // A UTF-16 unit takes at least a byte, and three at most.
  if (text.length * 3 <= MAX_REASON_BYTES) return text;
  const bytes = Buffer.from(text);
  if (bytes.length <= MAX_REASON_BYTES) return text;
  // A streaming decoder leaves out the character that the cut splits.
  return new TextDecoder().decode(bytes.subarray(0, MAX_REASON_BYTES), { stream: true });
}
