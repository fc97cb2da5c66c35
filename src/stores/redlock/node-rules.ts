/**
 * The decisions of one node as pure functions of its state and its clock: the specification of the
 * scripts in lua/. A differential test compares the two. Wake-ups are left out: they decide which
 * waiter asks next, never which owner is granted.
 */

import { type Instruction, longRestMs, type Marker } from "./membership.js";
import type { Foreign, NodeRelease, NodeRenewal, NotVoting, Vote } from "./protocol.js";

/** Clocks of clients may be so far behind a single server without a second round trip. */
const SINGLE_SERVER_SLACK_US = 1_000_000;

const DAY_US = 86_400_000_000;
const YEAR_US = 365 * DAY_US;
/** A ballot is kept a little longer than a day: after that its absence says as much. */
const SLACK_US = 60_000_000;
/**
 * Ballots of the same 1,000 seconds share an expiry: it may be that much earlier than said here.
 */
const PERIOD_US = 1_000_000_000;
/** `top` is this far ahead of the highest ballot, so that it is seldom written. */
const STRIDE_US = 10_000_000;

/** One process of a server, with its data. */
export interface NodeState extends MarkedNode {
  readonly names: Map<string, NameState>;
}

export interface NameState {
  /** The plain key of the published algorithm. */
  lock: Lock | null;
  ballot: Ballot | null;
  /** The data of another program at the key: the node neither writes nor deletes the key. */
  foreignLock?: Foreign | null;
  foreignBallot?: Foreign | null;
}

interface Ballot {
  readonly stored: number;
  readonly untilUs: number;
  readonly revoked?: Revoked;
  /** The record behind the ballot is that of a mark. */
  readonly isOfMark?: boolean;
}

interface Lock {
  readonly owner: string;
  /** The token of the grant that holds the lock, or that left a mark. */
  readonly token: number;
  /** The number of tokens of the grant, from `token` on. */
  readonly span: number;
  readonly untilMs: number;
  /** The lock was lost on this node, and a renewal took it again. */
  readonly isRetaken: boolean;
  /** Hears of a revocation; null where the node keeps no record of the lease. */
  readonly channel: string | null;
}

interface Revoked {
  readonly owner: string;
  readonly reason: string;
}

export interface VoteRequest {
  readonly set: string;
  readonly owner: string;
  readonly ballot: number;
  readonly span: number;
  readonly ttlMs: number;
  /** The channel of the client that asks. */
  readonly channel: string;
}

/** Votes for a ballot above the stored one, if the name is free or the owner's own. */
export function vote(node: NodeState, name: string, nowUs: number, request: VoteRequest): Vote {
  const { owner, ballot, ttlMs } = request;
  const state = stateOf(node, name, nowUs);
  if (state.foreignBallot) return state.foreignBallot;
  const refusal = whyNotVoting(node, nowUs, request) ?? state.foreignLock;
  if (refusal) return refusal;
  const stored = storedBallot(node, state, nowUs);
  // A ballot that is not above `top` keeps nothing out that is not out already.
  const most = Math.max(nowUs + YEAR_US, node.marker?.top ?? 0);
  // This node accepts no ballot above the stored one: the name is closed, and its key says why.
  if (stored > most) return { type: "foreign", key: "", holds: "ahead" };
  const { lock } = state;
  // rule: vote-spares-another-holder
  if (lock && lock.owner !== owner) {
    return { type: "held", stored, remainingMs: leftMs(lock, nowUs), record: null, ahead: 0 };
  }
  // rule: vote-only-above-the-ballot
  if (ballot <= stored) {
    if (lock && ballot === stored) return { type: "granted", remainingMs: leftMs(lock, nowUs) };
    // The floor of a single server follows its clock: a ballot above the time will be above it.
    return { type: "too_low", stored: node.singleServer && !state.ballot ? nowUs : stored };
  }
  if (ballot > most) return { type: "too_high", nowUs };
  take(node, state, nowUs, request, ballot);
  return { type: "granted", remainingMs: ttlMs };
}

/** Never shortens the lease. Takes a free node again, unless it knows a higher ballot. */
export function renew(
  node: NodeState,
  name: string,
  nowUs: number,
  request: VoteRequest,
): NodeRenewal {
  const { owner, ballot, ttlMs } = request;
  const state = stateOf(node, name, nowUs);
  if (state.foreignBallot) return state.foreignBallot;
  const { lock } = state;
  if (state.foreignLock || (lock && lock.owner !== owner)) return { type: "replaced" };
  if (lock) {
    if (node.foreign) return node.foreign;
    const unmarkedMs = node.singleServer ? Number.POSITIVE_INFINITY : 0;
    const maxTtlMs = node.marker ? longestMs(node.marker, nowUs) : unmarkedMs;
    if (maxTtlMs < ttlMs) return { type: "not_voting", why: "short", maxTtlMs };
    return prolong(state, lock, nowUs, request);
  }
  const { revoked } = state.ballot ?? {};
  if (revoked?.owner === owner) return { type: "revoked", reason: revoked.reason };
  // No other node can prove that the lease went on.
  if (node.singleServer) return { type: "missing" };
  const refusal = whyNotVoting(node, nowUs, request);
  if (refusal) return refusal;
  // A floor is no ballot: it says which votes the node may have forgotten. The holder proves that
  // no vote for a higher ballot was among them.
  if (state.ballot && state.ballot.stored > ballot) return { type: "missing" };
  take(node, state, nowUs, request, Math.max(ballot, storedBallot(node, state, nowUs)), true);
  return { type: "granted", remainingMs: ttlMs, isRetaken: true };
}

/**
 * A renewal that may come after the end of the lease. It takes no node again. A node that was taken
 * again does not count, nor does a node that may have forgotten a later holder.
 */
export function resume(
  node: NodeState,
  name: string,
  nowUs: number,
  request: Omit<VoteRequest, "span">,
): NodeRenewal {
  const { owner, ballot } = request;
  const state = stateOf(node, name, nowUs);
  if (state.foreignBallot) return state.foreignBallot;
  const { lock } = state;
  if (state.foreignLock || (lock && lock.owner !== owner)) return { type: "replaced" };
  const { revoked } = state.ballot ?? {};
  if (revoked?.owner === owner) return { type: "revoked", reason: revoked.reason };
  const refusal = whyNotVoting(node, nowUs, request);
  if (refusal) return refusal;
  if (!lock || lock.token !== ballot || lock.isRetaken) return { type: "missing" };
  return prolong(state, lock, nowUs, request);
}

function prolong(
  state: NameState,
  lock: Lock,
  nowUs: number,
  { ballot, ttlMs, channel }: Pick<VoteRequest, "ballot" | "ttlMs" | "channel">,
): NodeRenewal {
  // rule: node-renewal-never-shortens
  const untilMs = Math.max(lock.untilMs, ms(nowUs) + ttlMs);
  // After a resume, another client keeps the lease.
  state.lock = { ...lock, untilMs, channel: lock.channel === null ? null : channel };
  if (state.ballot) {
    state.ballot = { ...state.ballot, untilUs: Math.max(nowUs, ballot) + 2 * DAY_US };
  }
  return { type: "granted", remainingMs: untilMs - ms(nowUs), isRetaken: false };
}

/** Frees the lock if the owner holds it, and in any case closes the name up to this ballot. */
export function release(
  node: NodeState,
  name: string,
  nowUs: number,
  { owner, ballot, keepMs = 0 }: { owner: string; ballot: number; keepMs?: number },
): NodeRelease {
  const state = stateOf(node, name, nowUs);
  if (state.foreignBallot) return state.foreignBallot;
  const value = `done:${owner}`;
  // A request that was sent again finds the mark that it left.
  if (keepMs > 0 && state.lock?.owner === value) return { type: "released" };
  const isHeld = state.lock?.owner === owner;
  if (isHeld) {
    const untilMs = ms(nowUs) + keepMs;
    const mark = { owner: value, token: ballot, span: 1, untilMs, isRetaken: false };
    state.lock = keepMs > 0 ? { ...mark, channel: null } : null;
  }
  const known = storedBallot(node, state, nowUs);
  // A ballot so far ahead would close the name until then, if it is not the ballot of the name.
  const closed = ballot > Math.max(nowUs + YEAR_US, known) ? 0 : ballot + 1;
  const stored = Math.max(known, closed);
  const { revoked, isOfMark, untilUs = 0 } = state.ballot ?? {};
  const kept = keptBallot(stored, nowUs);
  if (isHeld && keepMs > 0) state.ballot = keptForMark(kept, nowUs + keepMs * 1000 + DAY_US);
  else if (isOfMark && !isHeld) state.ballot = keptForMark(kept, untilUs);
  else state.ballot = { ...kept, ...(revoked && !isHeld ? { revoked } : {}) };
  return isHeld ? { type: "released" } : absence(node, nowUs);
}

/** Ends the lease that has this token among its tokens, or drops the mark that has it. */
export function revoke(
  node: NodeState,
  name: string,
  nowUs: number,
  { token, reason }: { token: number; reason: string },
): NodeRelease {
  const state = stateOf(node, name, nowUs);
  if (state.foreignBallot) return state.foreignBallot;
  const { lock } = state;
  if (!lock || token < lock.token || token >= lock.token + lock.span) return absence(node, nowUs);
  state.lock = null;
  const stored = Math.max(storedBallot(node, state, nowUs), lock.token + 1);
  state.ballot = { ...keptBallot(stored, nowUs), revoked: { owner: lock.owner, reason } };
  return { type: "released" };
}

/** Drops what has expired, as the server does. */
function stateOf(node: NodeState, name: string, nowUs: number): NameState {
  let state = node.names.get(name);
  if (!state) {
    state = { lock: null, ballot: null };
    node.names.set(name, state);
  }
  if (state.lock && state.lock.untilMs <= ms(nowUs)) state.lock = null;
  if (state.ballot && state.ballot.untilUs <= nowUs) state.ballot = null;
  return state;
}

/** A name without a ballot was last voted for a day ago, or before the node forgot its votes. */
function storedBallot(node: NodeState, { ballot }: NameState, nowUs: number): number {
  if (ballot) return ballot.stored;
  if (node.singleServer) return nowUs - SINGLE_SERVER_SLACK_US;
  const { marker } = node;
  const bound = nowUs - DAY_US;
  if (!marker || marker.floor === null) return bound;
  const { floor } = marker;
  if (bound > floor + SLACK_US / 2) node.marker = { ...marker, floor: bound };
  return Math.max(bound, floor);
}

function take(
  node: NodeState,
  state: NameState,
  nowUs: number,
  { owner, ballot, span, ttlMs, channel }: VoteRequest,
  stored: number,
  isRetaken = false,
): void {
  state.lock = { owner, token: ballot, span, untilMs: ms(nowUs) + ttlMs, isRetaken, channel };
  state.ballot = keptBallot(stored, nowUs);
  const { marker } = node;
  if (marker && ballot > marker.top) node.marker = { ...marker, top: ballot + STRIDE_US };
}

function keptBallot(stored: number, nowUs: number): Ballot {
  return { stored, untilUs: Math.max(nowUs, stored) + DAY_US + SLACK_US + PERIOD_US };
}

/** Without its record, a mark would look like the key of another program. */
function keptForMark(kept: Ballot, leastUs: number): Ballot {
  return { ...kept, untilUs: Math.max(kept.untilUs, leastUs), isOfMark: true };
}

function leftMs({ untilMs }: { untilMs: number }, nowUs: number): number {
  return untilMs - ms(nowUs);
}

/**
 * The right of one node to vote, as pure functions of its marker and its clock: the part of the
 * specification of lua/shared.lua and lua/node.lua that is about the node, not about a name.
 */

/** One process of a server, with its marker. */
export interface MarkedNode {
  readonly run: string;
  readonly startedMs: number;
  marker: Marker | null;
  /** The data of another program at the key of the marker. */
  foreign?: Foreign | null;
  /**
   * The server decides alone, and has no marker. It grants no lock until that long after its start.
   */
  readonly singleServer?: { readonly startDelayMs: number };
}

/** False when the instruction does not apply any more. */
export function instruct(
  node: MarkedNode,
  nowUs: number,
  set: string,
  instruction: Instruction,
): boolean {
  const { run, marker } = node;
  if (instruction.run !== run || node.foreign) return false;
  const isMarked = marker?.run === run;
  if (instruction.type === "admit") {
    if (!isMarked || marker.floor !== null || marker.fromMs > ms(nowUs)) return false;
    const floor = Math.max(instruction.floor, marker.top);
    node.marker = { ...marker, floor, top: floor };
    return true;
  }
  const { how, maxTtlMs, restMs } = instruction;
  const overMs = ms(nowUs) + restMs;
  if (isMarked && marker.set !== set && how !== "now") return false;
  const isAwake = marker !== null && marker.fromMs <= ms(nowUs) && marker.floor !== null;
  if (isMarked && marker.set === set && (how !== "now" || isAwake)) {
    const moreMs = Math.max(0, maxTtlMs - marker.maxTtlMs);
    const laterMs = Math.max(marker.fromMs + moreMs, overMs);
    const fromMs = marker.fromMs > ms(nowUs) ? laterMs : marker.fromMs;
    node.marker = { ...marker, maxTtlMs: marker.maxTtlMs + moreMs, fromMs };
    return true;
  }
  const sinceMs = how === "join" ? ms(nowUs) : node.startedMs;
  // rule: restarted-node-waits
  const fromMs = how === "now" ? 0 : Math.max(sinceMs + maxTtlMs, overMs);
  const least = marker?.floor ?? 0;
  const floor = instruction.floor === null ? null : Math.max(least, instruction.floor, nowUs);
  const top = Math.max(least, marker?.top ?? 0, floor ?? 0);
  const { longTtlMs = 0, longUntilMs = 0 } = marker ?? {};
  node.marker = { run, set, fromMs, maxTtlMs, longTtlMs, longUntilMs, floor, top };
  return true;
}

/**
 * Announces that leases may be this long, for this time. A majority must know that before any node
 * votes for such a lease. When the last lease of that length has ended, the node forgets it.
 */
export function raise(
  node: MarkedNode,
  nowUs: number,
  set: string,
  { ttlMs, forMs }: { ttlMs: number; forMs: number },
): boolean {
  const { marker } = node;
  if (marker?.run !== node.run || marker.set !== set) return false;
  if (ttlMs <= marker.maxTtlMs) return true;
  const isOver = longRestMs({ nowUs, marker }) === 0;
  const longTtlMs = isOver ? ttlMs : Math.max(marker.longTtlMs, ttlMs);
  const longUntilMs = Math.max(isOver ? 0 : marker.longUntilMs, ms(nowUs) + forMs);
  node.marker = { ...marker, longTtlMs, longUntilMs };
  return true;
}

/** The longest lease that may be granted now. */
export function longestMs(marker: Marker, nowUs: number): number {
  const { maxTtlMs, longTtlMs, longUntilMs } = marker;
  return ms(nowUs) < longUntilMs ? Math.max(maxTtlMs, longTtlMs) : maxTtlMs;
}

/** A node that may have forgotten a lease does not say that the lease was absent. */
export function absence({ run, marker, singleServer }: MarkedNode, nowUs: number): NodeRelease {
  const isSure = singleServer !== undefined || (marker?.run === run && marker.fromMs <= ms(nowUs));
  return { type: isSure ? "absent" : "unsure" };
}

/** Why the node does not vote; null where it does. */
export function whyNotVoting(
  node: MarkedNode,
  nowUs: number,
  { set, ttlMs }: { readonly set: string; readonly ttlMs: number },
): NotVoting | Foreign | null {
  const { run, marker, foreign, singleServer } = node;
  if (singleServer) {
    const waitMs = node.startedMs + singleServer.startDelayMs - ms(nowUs);
    return waitMs > 0 ? { type: "not_voting", why: "young", waitMs } : null;
  }
  if (foreign) return foreign;
  // rule: marker-of-this-process-only
  if (marker?.run !== run) return { type: "not_voting", why: "unmarked" };
  if (marker.set !== set) return { type: "not_voting", why: "other_set", set: marker.set };
  const waitMs = marker.fromMs - ms(nowUs);
  if (waitMs > 0) return { type: "not_voting", why: "young", waitMs };
  if (marker.floor === null) return { type: "not_voting", why: "unfloored" };
  const maxTtlMs = longestMs(marker, nowUs);
  // rule: node-refuses-unannounced-leases
  if (maxTtlMs < ttlMs) return { type: "not_voting", why: "short", maxTtlMs };
  // From now on the node votes, also after its clock was set back.
  node.marker = { ...marker, fromMs: 0 };
  return null;
}

/** The milliseconds of a time in microseconds. */
export function ms(nowUs: number): number {
  return Math.floor(nowUs / 1000);
}
