/**
 * The proposer's rules: which ballot to ask for, what the votes of a round amount to, and until
 * when a grant may be believed. Pure, so that they can be tried in any order of events.
 */
import type { Port } from "../../time/port.js";
import type { NodeRelease, NodeRenewal, Vote } from "./vote.js";

/** Clocks of two machines run apart by this part, and times are rounded by this much. */
const ROUNDED_MS = 2;

export function majorityOf(nodes: number): number {
  // rule: majority-of-all-nodes
  return Math.floor(nodes / 2) + 1;
}

/**
 * So many tokens belong to a ballot, itself the first of them. All that are proposed are multiples
 * of it, so that a higher one is above all the tokens of a lower.
 */
export const BALLOT_SPAN = 64;

/** Follows the clock, so that one round is enough; and whatever was seen, so that it rises. */
export function nextBallot(wallUs: number, highestSeen: number): number {
  // rule: ballots-span-their-tokens
  return Math.ceil(Math.max(wallUs, highestSeen + 1) / BALLOT_SPAN) * BALLOT_SPAN;
}

/** How many of its tokens a grant is given. */
export function spanOf(claim: { readonly span: number }): number {
  return Math.min(claim.span, BALLOT_SPAN);
}

/** The wall clock, finer than its milliseconds: two who ask in the same one seldom collide. */
export function ballotClock({ clock }: Port): number {
  return clock.wallUs() + Math.floor((clock.nowMs() % 1) * 1000);
}

export type Judgement =
  /** A majority voted for this very ballot. */
  | "granted"
  /** Some nodes know a higher ballot: with a higher one a majority is within reach. */
  | "raise"
  /** Others hold it, or took so many nodes that nobody has a majority. */
  | "refused"
  /** So many nodes do not vote at present that there is no majority. */
  | "asleep"
  /** Too few nodes answer: next time more of them may. */
  | "silent";

/**
 * What the votes of one round say; null while a majority may still come. Only votes of this round
 * are given, so every grant among them is for its ballot: votes for a lower one do not count.
 */
export function judge(votes: readonly (Vote | undefined)[]): Judgement | null {
  const majority = majorityOf(votes.length);
  let [granted, low, refused, asleep, pending] = [0, 0, 0, 0, 0];
  for (const vote of votes) {
    if (vote === undefined) pending += 1;
    else if (vote.type === "granted") granted += 1;
    else if (vote.type === "too_low") low += 1;
    else if (vote.type === "held" || vote.type === "reserved") refused += 1;
    else if (vote.type === "asleep") asleep += 1;
  }
  if (granted >= majority) return "granted";
  if (granted + pending >= majority) return null;
  if (granted + low >= majority) return "raise";
  if (refused > votes.length - majority) return "refused";
  if (pending > 0) return null;
  if (granted + low + refused >= majority) return "refused";
  return asleep > votes.length - majority ? "asleep" : "silent";
}

/** The highest ballot that the votes tell of. */
export function highestStored(votes: readonly (Vote | undefined)[]): number {
  let highest = 0;
  for (const vote of votes) {
    if (vote && "stored" in vote) highest = Math.max(highest, vote.stored);
  }
  return highest;
}

/**
 * Until when a majority is certain to keep it: each node for what it said, counted from just
 * before its request was sent, less the margin for its clock.
 */
export function deadlineOf(
  votes: readonly (Vote | NodeRenewal | undefined)[],
  sentMs: number,
  driftFactor: number,
): number {
  const ends: number[] = [];
  for (const vote of votes) {
    if (vote?.type !== "granted") continue;
    const { remainingMs } = vote;
    ends.push(sentMs + remainingMs - remainingMs * driftFactor - ROUNDED_MS);
  }
  ends.sort((a, b) => b - a);
  // rule: deadline-of-a-majority
  return ends[majorityOf(votes.length) - 1] ?? Number.NEGATIVE_INFINITY;
}

export type RenewalJudgement = "renewed" | "gone" | "unknown";

/**
 * A node that is silent or does not vote may still be needed: only certain losses end a lease. And
 * a renewal never makes one: where no node at all kept it, what was taken again does not count.
 */
export function judgeRenewal(
  answers: readonly (NodeRenewal | undefined)[],
): RenewalJudgement | null {
  const majority = majorityOf(answers.length);
  let [granted, kept, gone, pending] = [0, 0, 0, 0];
  for (const answer of answers) {
    if (answer === undefined) pending += 1;
    else if (answer.type === "granted") {
      granted += 1;
      if (!answer.isRetaken) kept += 1;
    } else if (["replaced", "revoked", "missing"].includes(answer.type)) gone += 1;
  }
  if (granted >= majority && kept > 0) return "renewed";
  if (gone > answers.length - majority) return "gone";
  if (pending > 0) return null;
  return granted >= majority ? "gone" : "unknown";
}

/**
 * Whether the lease was there: a majority said so, or those who know of none are too few to be
 * sure. A node that may have forgotten it is no witness against it.
 */
export function judgeRelease(
  answers: readonly (NodeRelease | undefined)[],
): boolean | "silent" | null {
  const majority = majorityOf(answers.length);
  let [released, absent, unsure, pending] = [0, 0, 0, 0];
  for (const answer of answers) {
    if (answer === undefined) pending += 1;
    else if (answer.type === "released") released += 1;
    else if (answer.type === "absent") absent += 1;
    else if (answer.type === "unsure") unsure += 1;
  }
  if (released >= majority) return true;
  if (absent > answers.length - majority) return false;
  if (pending > 0) return null;
  if (released + absent + unsure < majority) return "silent";
  return released > 0;
}
