/** What a node answers when it is asked to vote, to renew or to look, and how that is written. */
import { storeError } from "../redis/failure.js";
import { type NameRecord, parseRecord } from "./name-record.js";

/** Why a node does not vote at all, whatever it keeps of the name. */
export type Asleep =
  /** It restarted, lost its data or is new: nobody has told it since. */
  | { readonly type: "asleep"; readonly why: "unmarked" }
  /** It may have forgotten votes for leases that still live. */
  | { readonly type: "asleep"; readonly why: "young"; readonly waitMs: number }
  /** Its time has come, but it does not know yet which ballots it forgot. */
  | { readonly type: "asleep"; readonly why: "unfloored" }
  /** Leases of this length were not announced on it. */
  | { readonly type: "asleep"; readonly why: "short"; readonly maxTtlMs: number }
  /** It belongs to other nodes than those this client asks. */
  | { readonly type: "asleep"; readonly why: "other_set"; readonly set: string };

export type Vote =
  | { readonly type: "granted"; readonly remainingMs: number }
  | Held
  /** Free, but kept for a moment for the waiter that was woken. */
  | {
      readonly type: "reserved";
      readonly stored: number;
      readonly remainingMs: number;
      readonly ahead: number;
    }
  | { readonly type: "too_low"; readonly stored: number }
  | { readonly type: "too_high"; readonly nowUs: number }
  | Asleep
  | Failure;

export interface Held {
  readonly type: "held";
  readonly stored: number;
  /** Infinite where the key has no expiry: it is none of ours. */
  readonly remainingMs: number;
  /** Null where it is none of ours. */
  readonly record: NameRecord | null;
  readonly ahead: number;
}

/** A node that says nothing of use. */
export type Failure =
  | { readonly type: "time_out" }
  | { readonly type: "error"; readonly error: Error };

/** What a waiter learns: as a vote that was not given, or that the name is open. */
export type Sight = Vote | { readonly type: "open"; readonly stored: number };

export type NodeRenewal =
  /** `isRetaken`: it was free, and is the holder's again. */
  | { readonly type: "granted"; readonly remainingMs: number; readonly isRetaken: boolean }
  | { readonly type: "replaced" }
  | { readonly type: "revoked"; readonly reason: string }
  | { readonly type: "missing" }
  | Asleep
  | Failure;

/** `unsure`: it was not there, on a node that may have forgotten it. */
export type NodeRelease =
  | { readonly type: "released" }
  | { readonly type: "absent" }
  | { readonly type: "unsure" }
  | Failure;

const GRANTED = "G";

/** `ttlMs` is what was asked for. */
export function decodeVote(raw: unknown, ttlMs: number): Vote {
  return decodeSight(raw, ttlMs) as Vote;
}

export function decodeSight(raw: unknown, ttlMs: number): Sight {
  if (raw === GRANTED) return { type: "granted", remainingMs: ttlMs };
  const [code, first, second, ...more] = raw as readonly unknown[];
  switch (code) {
    case GRANTED:
      return { type: "granted", remainingMs: Number(first) };
    case "H":
      return held(Number(first), Number(second), more);
    case "R": {
      const [ahead] = more;
      const remainingMs = Number(second);
      return { type: "reserved", stored: Number(first), remainingMs, ahead: Number(ahead) };
    }
    case "L":
      return { type: "too_low", stored: Number(first) };
    case "A":
      return { type: "too_high", nowUs: Number(first) };
    case "O":
      return { type: "open", stored: Number(first) };
    default:
      return asleep(code, first);
  }
}

export function decodeRenewal(raw: unknown): NodeRenewal {
  const [code, first, second] = raw as readonly unknown[];
  switch (code) {
    case GRANTED:
      return { type: "granted", remainingMs: Number(first), isRetaken: Number(second) === 1 };
    case "H":
      return { type: "replaced" };
    case "V":
      return { type: "revoked", reason: String(first) };
    case "N":
      return { type: "missing" };
    default:
      return asleep(code, first);
  }
}

export function decodeRelease(raw: unknown): NodeRelease {
  const code = Number(raw);
  return { type: code === 1 ? "released" : code === 0 ? "absent" : "unsure" };
}

function held(stored: number, pttlMs: number, more: readonly unknown[]): Held {
  const [value, raw, ahead] = more;
  const record = parseRecord(String(raw));
  return {
    type: "held",
    stored,
    remainingMs: pttlMs < 0 ? Number.POSITIVE_INFINITY : pttlMs,
    record: record?.value === String(value) ? record : null,
    ahead: Number(ahead),
  };
}

function asleep(code: unknown, first: unknown): Asleep | Failure {
  switch (code) {
    case "U":
      return { type: "asleep", why: "unmarked" };
    case "Q":
      return { type: "asleep", why: "young", waitMs: Number(first) };
    case "F":
      return { type: "asleep", why: "unfloored" };
    case "T":
      return { type: "asleep", why: "short", maxTtlMs: Number(first) };
    case "S":
      return { type: "asleep", why: "other_set", set: String(first) };
    default:
      return { type: "error", error: storeError(`it answered ${String(code)}`) };
  }
}
