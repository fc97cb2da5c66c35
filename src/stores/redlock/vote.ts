/** What a node answers when it is asked to vote, to renew or to look, and how that is written. */
import { list, oneOf, text, Unreadable, whole } from "../../foreign-data.js";
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
  | { readonly type: "error"; readonly error: Error }
  | Foreign;

/** A key that the store uses holds data of another program: the node leaves it as it is. */
export interface Foreign {
  readonly type: "foreign";
  readonly key: string;
  /** A type of Redis, or a ballot far `ahead` of the clock. */
  readonly holds: string;
}

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
const FOREIGN = "X";

/** `ttlMs` is what was asked for. */
export function decodeVote(raw: unknown, ttlMs: number): Vote {
  return decodeSight(raw, ttlMs) as Vote;
}

export function decodeSight(raw: unknown, ttlMs: number): Sight {
  if (raw === GRANTED) return { type: "granted", remainingMs: ttlMs };
  const [code, first, second, third, ...more] = list(raw);
  switch (code) {
    case GRANTED:
      return { type: "granted", remainingMs: whole(first) };
    case "H":
      return held(whole(first), expiryMs(second), third, more);
    case "R":
      return {
        type: "reserved",
        stored: whole(first),
        remainingMs: whole(second),
        ahead: whole(third),
      };
    case "L":
      return { type: "too_low", stored: whole(first) };
    case "A":
      return { type: "too_high", nowUs: whole(first) };
    case "O":
      return { type: "open", stored: whole(first) };
    default:
      return refusal(code, first, second);
  }
}

export function decodeRenewal(raw: unknown): NodeRenewal {
  const [code, first, second] = list(raw);
  switch (code) {
    case GRANTED:
      return { type: "granted", remainingMs: whole(first), isRetaken: Number(second) === 1 };
    case "H":
      return { type: "replaced" };
    case "V":
      return { type: "revoked", reason: text(first) };
    case "N":
      return { type: "missing" };
    default:
      return refusal(code, first, second);
  }
}

export function decodeRelease(raw: unknown): NodeRelease {
  const refused = decodeForeign(raw);
  if (refused) return refused;
  const code = oneOf(["1", "0", "-1"], String(raw));
  return { type: code === "1" ? "released" : code === "0" ? "absent" : "unsure" };
}

/** How long a key lives, from what PTTL says: negative where it has no expiry, or is not there. */
export function expiryMs(pttl: unknown): number {
  return /^-[12]$/.test(String(pttl)) ? Number.POSITIVE_INFINITY : whole(pttl);
}

function held(stored: number, remainingMs: number, value: unknown, more: readonly unknown[]): Held {
  const [raw, ahead] = more;
  const record = parseRecord(String(raw));
  return {
    type: "held",
    stored,
    remainingMs,
    record: record?.value === String(value) ? record : null,
    ahead: whole(ahead),
  };
}

/** Of a node that does not vote, whatever it is asked. */
function refusal(code: unknown, first: unknown, second: unknown): Asleep | Foreign {
  switch (code) {
    case "U":
      return { type: "asleep", why: "unmarked" };
    case "Q":
      return { type: "asleep", why: "young", waitMs: whole(first) };
    case "F":
      return { type: "asleep", why: "unfloored" };
    case "T":
      return { type: "asleep", why: "short", maxTtlMs: whole(first) };
    case "S":
      return { type: "asleep", why: "other_set", set: text(first) };
    case FOREIGN:
      return foreign(first, second);
    default:
      throw new Unreadable("an answer of a node");
  }
}

/** The refusal of a node for a key that is not ours, or null for another answer. */
export function decodeForeign(raw: unknown): Foreign | null {
  const [code, first, second] = Array.isArray(raw) ? raw : [];
  return code === FOREIGN ? foreign(first, second) : null;
}

/** The last part of an answer may name a foreign key that has no effect on the vote. */
export function decodeAside(raw: unknown): Foreign | null {
  return Array.isArray(raw) ? decodeForeign(raw.at(-1)) : null;
}

function foreign(key: unknown, holds: unknown): Foreign {
  return { type: "foreign", key: text(key), holds: text(holds) };
}
