/**
 * The requests to a node as its script takes them, and the answers of a node. Votes and releases
 * are the frequent requests: they are packed into few arguments, because one more argument costs
 * both sides more than cutting up a longer one does.
 */

import type { Claim, HolderView, MarkView, Meta } from "../../contract/store.js";
import { list, oneOf, text, Unreadable, whole } from "../../events/foreign-data.js";
import { NO_LIMIT } from "../../rules/fits.js";
import type { Runtime } from "../../time/runtime.js";

/** One round of votes. */
export interface VoteRound {
  readonly claim: Pick<Claim, "owner" | "ttlMs" | "span">;
  readonly ballot: number;
  /** Hears of a revocation. */
  readonly channel: string;
  readonly metaText: string;
  readonly setId: string;
  /** The longest usual lease: a node whose marker says the same compares no numbers. */
  readonly maxTtlMs: number;
  /** The waiter that a node enters into its queue when it refuses; null where none waits. */
  readonly waiter: { readonly id: string; readonly since: string } | null;
}

/** The arguments as lua/vote.lua has them. */
export function voteArgs(round: VoteRound): string[] {
  const { claim, ballot, channel, metaText, setId, maxTtlMs, waiter } = round;
  const ttlMs = Math.ceil(claim.ttlMs);
  const longest = digits(Math.max(ttlMs, Math.ceil(maxTtlMs)), 13);
  const times = `${ballot} ${spanText(claim)} ${Math.floor(ballot / 1000)}`;
  const record = `${startOf(claim.owner, ballot)}${times} ${channel} ${metaText}`;
  const args = ["vote", `${longest}v${setId}${ttlMs}`, record];
  if (waiter) args.push(waiter.id);
  if (waiter && waiter.since !== `${ballot}`) args.push(waiter.since);
  return args;
}

/** One lease of a call that renews many. */
export interface Renewed {
  readonly grant: {
    readonly claim: Pick<Claim, "owner" | "span">;
    readonly token: bigint;
    readonly keys: readonly string[];
  };
  readonly ttlMs: number;
}

/** The client that renews the grant from now on. */
export interface RenewingClient {
  readonly setId: string;
  readonly channel: string;
}

/** The call that renews many leases. All leases share the first key, that of the node. */
export function renewalsCall(
  leases: readonly Renewed[],
  { setId, channel }: RenewingClient,
): { readonly keys: string[]; readonly args: string[] } {
  const [keys, args]: [string[], string[]] = [[], ["renew", setId, channel]];
  for (const { grant, ttlMs } of leases) {
    const [node = "", lock = "", ballot = ""] = grant.keys;
    if (keys.length === 0) keys.push(node);
    keys.push(lock, ballot);
    const { claim, token } = grant;
    args.push(claim.owner, `${token}`, spanText(claim), `${Math.ceil(ttlMs)}`);
  }
  return { keys, args };
}

export function resumeArgs(
  { owner, ttlMs }: Pick<Claim, "owner" | "ttlMs">,
  token: bigint,
  { setId, channel }: RenewingClient,
): string[] {
  return ["resume", setId, owner, `${token}`, `${Math.ceil(ttlMs)}`, channel];
}

/** A mark, and a waiter that goes on waiting, may follow as further arguments. */
export function releaseArgs(owner: string, ballot: number, reserveMs: number): string[] {
  return ["release", startOf(owner, ballot), `${ballot + 1}`, `${reserveMs}`];
}

/** The record of a holder begins with this. */
function startOf(owner: string, ballot: number): string {
  return `${ballot} H ${owner} `;
}

function spanText(claim: Pick<Claim, "span">): string {
  return digits(spanOf(claim), 2);
}

/** A number padded to this many digits: the scripts cut by position, and compare as text. */
function digits(number: number, size: number): string {
  return `${number}`.padStart(size, "0");
}

/** Why a node does not vote at all, whatever it keeps of the name. */
export type NotVoting =
  /** The node restarted, lost its data or is new, and no client has marked it since. */
  | { readonly type: "not_voting"; readonly why: "unmarked" }
  /** The node may have forgotten votes for leases that still live. */
  | { readonly type: "not_voting"; readonly why: "young"; readonly waitMs: number }
  /** The leases are over, but the node does not know yet which ballots it forgot. */
  | { readonly type: "not_voting"; readonly why: "unfloored" }
  /** Leases of this length were not announced on the node. */
  | { readonly type: "not_voting"; readonly why: "short"; readonly maxTtlMs: number }
  /** The node belongs to a set of nodes other than the set that this client asks. */
  | { readonly type: "not_voting"; readonly why: "other_set"; readonly set: string };

export type Vote =
  | { readonly type: "granted"; readonly remainingMs: number }
  | Held
  | Reserved
  | { readonly type: "too_low"; readonly stored: number }
  | { readonly type: "too_high"; readonly nowUs: number }
  | NotVoting
  | Failure;

/** The name has no holder, but is kept for a moment for the waiter that was woken. */
export interface Reserved {
  readonly type: "reserved";
  readonly stored: number;
  readonly remainingMs: number;
  readonly ahead: number;
}

export interface Held {
  readonly type: "held";
  readonly stored: number;
  /** Infinite where the key has no expiry: another program wrote the key. */
  readonly remainingMs: number;
  /** Null where another program holds the key. */
  readonly record: NameRecord | null;
  readonly ahead: number;
}

/** A node that gives no usable answer. */
export type Failure =
  | { readonly type: "time_out" }
  | { readonly type: "error"; readonly error: Error }
  | Foreign;

/** A key of the store holds data of another program: the node leaves the key as it is. */
export interface Foreign {
  readonly type: "foreign";
  readonly key: string;
  /** A type of Redis, or `ahead` for a ballot far ahead of the clock. */
  readonly holds: string;
}

/** The answer to a waiter that asks whether voting is worthwhile: a refusal, or `open`. */
export type LookReply = Vote | { readonly type: "open"; readonly stored: number };

export type NodeRenewal =
  /** `isRetaken`: the name was free on this node, and is the holder's again. */
  | { readonly type: "granted"; readonly remainingMs: number; readonly isRetaken: boolean }
  | { readonly type: "replaced" }
  | { readonly type: "revoked"; readonly reason: string }
  | { readonly type: "missing" }
  | NotVoting
  | Failure;

/** `unsure`: the lease was not there, but the node may have forgotten it. */
export type NodeRelease =
  | { readonly type: "released" }
  | { readonly type: "absent" }
  | { readonly type: "unsure" }
  | Failure;

const GRANTED = "G";
/** The answer that the full lease was granted. ioredis can be told to give numbers as texts. */
const GRANTED_IN_FULL: readonly unknown[] = [1, "1"];
const FOREIGN = "X";

/** `ttlMs` is the length of the lease that was asked for. */
export function decodeVote(raw: unknown, ttlMs: number): Vote {
  const reply = decodeLookReply(raw, ttlMs);
  if (reply.type === "open") throw new Unreadable("a vote");
  return reply;
}

export function decodeLookReply(raw: unknown, ttlMs: number): LookReply {
  if (GRANTED_IN_FULL.includes(raw)) return { type: "granted", remainingMs: ttlMs };
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

/** How long a key lives, by PTTL: negative where the key has no expiry, or is absent. */
export function expiryMs(pttl: unknown): number {
  return /^-[12]$/.test(String(pttl)) ? Number.POSITIVE_INFINITY : whole(pttl);
}

function held(
  stored: number,
  remainingMs: number,
  value: unknown,
  [raw, rank]: readonly unknown[],
): Held {
  const known = parseRecord(String(raw));
  const record = known?.value === String(value) ? known : null;
  return { type: "held", stored, remainingMs, record, ahead: whole(rank) };
}

/** The answer of a node that does not vote, whatever it is asked. */
function refusal(code: unknown, first: unknown, second: unknown): NotVoting | Foreign {
  switch (code) {
    case "U":
      return { type: "not_voting", why: "unmarked" };
    case "Q":
      return { type: "not_voting", why: "young", waitMs: whole(first) };
    case "F":
      return { type: "not_voting", why: "unfloored" };
    case "T":
      return { type: "not_voting", why: "short", maxTtlMs: whole(first) };
    case "S":
      return { type: "not_voting", why: "other_set", set: text(first) };
    case FOREIGN:
      return foreign(first, second);
    default:
      throw new Unreadable("an answer of a node");
  }
}

/** The refusal of a node for a key of another program; null for any other answer. */
export function decodeForeign(raw: unknown): Foreign | null {
  const [code, first, second] = Array.isArray(raw) ? raw : [];
  return code === FOREIGN ? foreign(first, second) : null;
}

/** The last part of an answer may name a foreign key that has no effect on the vote. */
export function decodeAside(raw: unknown): Foreign | null {
  const isOneAnswer = Array.isArray(raw) && !Array.isArray(raw[0]);
  return isOneAnswer ? decodeForeign(raw.at(-1)) : null;
}

function foreign(key: unknown, holds: unknown): Foreign {
  return { type: "foreign", key: text(key), holds: text(holds) };
}

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

/**
 * Ballots: the numbers that a round of votes is for. The ballot of a grant is its first token, so
 * ballots follow the wall clock and never repeat.
 */

/**
 * The number of tokens that belong to a ballot; the ballot itself is the first of them. Every
 * proposed ballot is a multiple of this number, so a higher ballot is above all tokens of a lower
 * one.
 */
export const BALLOT_SPAN = 64;

/** Follows the clock, so that one round is enough, and is above every ballot seen of the name. */
export function nextBallot(wallUs: number, highestSeen: number): number {
  // rule: ballots-span-their-tokens
  return Math.ceil(Math.max(wallUs, highestSeen + 1) / BALLOT_SPAN) * BALLOT_SPAN;
}

/** The number of tokens that a grant gets. */
export function spanOf(claim: { readonly span: number }): number {
  return Math.min(claim.span, BALLOT_SPAN);
}

/** The wall clock in microseconds: two clients that ask in the same millisecond seldom collide. */
export function ballotClock({ clock }: Runtime): number {
  return clock.wallUs() + Math.floor((clock.nowMs() % 1) * 1000);
}

const MAX_NAMES = 10_000;

/**
 * For each name the highest ballot that this client has seen, while it is ahead of the wall clock:
 * the next ballot must be above it. A ballot that the clock has passed is of no use any more.
 */
export class SeenBallots {
  readonly #ballots = new Map<string, number>();

  of(key: string): number {
    return this.#ballots.get(key) ?? 0;
  }

  note(key: string, ballot: number, wallUs: number): void {
    const highest = Math.max(ballot, this.of(key));
    if (highest < wallUs) {
      this.#ballots.delete(key);
      return;
    }
    this.#ballots.set(key, highest);
    if (this.#ballots.size <= MAX_NAMES) return;
    for (const [name, seen] of this.#ballots) if (seen < wallUs) this.#ballots.delete(name);
    // A forgotten ballot costs a second round of votes, no more.
    if (this.#ballots.size > MAX_NAMES) this.#ballots.clear();
  }
}
