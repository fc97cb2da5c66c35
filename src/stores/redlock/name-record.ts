import type { HolderView, MarkView, Meta } from "../../contract/store.js";
import { NO_LIMIT } from "../../rules/fits.js";

/**
 * The record that a node keeps in addition to the plain key: the holder, or the mark of a `once`.
 */
export interface NameRecord {
  readonly kind: "held" | "done";
  /** The value of the plain key that the record is about. */
  readonly value: string;
  readonly token: bigint;
  /** By the node's clock. */
  readonly sinceMs: number;
  /** Empty where the node was taken again by a renewal. */
  readonly meta: Meta;
}

/** Null when the text has neither a holder nor a mark. */
export function parseRecord(text: string): NameRecord | null {
  const parts = /^\d+ ([HWD]) (\S+) (\d+) \d+ (\d+) \S+ (.*)$/s.exec(text);
  if (!parts) return null;
  const [, kind, value = "", token = "", since = "", meta = ""] = parts;
  return {
    kind: kind === "D" ? "done" : "held",
    value,
    token: BigInt(token),
    sinceMs: Number(since),
    meta: parseMeta(meta),
  };
}

/** Empty where the text is no meta: a meta describes a holder, and decides nothing. */
function parseMeta(text: string): Meta {
  try {
    const meta: unknown = JSON.parse(text || "{}");
    return typeof meta === "object" && meta !== null && !Array.isArray(meta) ? (meta as Meta) : {};
  } catch {
    return {};
  }
}

/** A holder of another program has the token zero. */
export function holderView(
  record: NameRecord | null,
  remainingMs: number,
  nowMs: number,
): HolderView {
  return {
    token: record?.token ?? 0n,
    mode: "exclusive",
    weight: 1,
    limit: null,
    meta: record?.meta ?? {},
    heldMs: record ? Math.max(0, nowMs - record.sinceMs) : 0,
    remainingMs: Math.min(remainingMs, NO_LIMIT),
  };
}

export function markView({ token, meta }: NameRecord, remainingMs: number): MarkView {
  return { token, meta, remainingMs: Math.min(remainingMs, NO_LIMIT) };
}
