/**
 * The proposer's rules: the result of the answers of all nodes to one question, and the deadline of
 * a grant. The functions are pure, so that tests can try the answers in any order.
 */

import type { Busy, HolderView } from "../../contract/store.js";
import { isFinal, type Outcome, StoreError } from "../../errors/index.js";
import {
  majorityReadyAt,
  preventsMajority,
  reachedByMajority,
  Tally,
} from "../../rules/majority.js";
import type { Failure, Held, LookReply, NodeRelease, NodeRenewal, Vote } from "./protocol.js";
import { holderView, markView } from "./protocol.js";

type Answer = Vote | LookReply | Failure | undefined;
export type Answers = readonly Answer[];
/** The answer to any question about a lock. */
export type AnyAnswer = Answer | NodeRenewal | NodeRelease;

/** The error by rounding, in addition to the drift of clocks. */
const ROUNDED_MS = 2;

export type Judgement =
  /** A majority voted for this very ballot. */
  | "granted"
  /** Some nodes know a higher ballot: a majority is within reach of a ballot above theirs. */
  | "raise"
  /** Another owner holds the lock, or several proposers split the votes. */
  | "refused"
  /** Too many nodes do not vote at present for a majority. */
  | "not_voting"
  /** Too few nodes answer. */
  | "silent";

/**
 * The result of one round of votes; null while a majority is still possible. All votes must be
 * answers to this round, so that every grant among them is for its ballot: votes for a lower ballot
 * do not count.
 */
export function judge(votes: readonly (Vote | undefined)[]): Judgement | null {
  const tally = new Tally(votes);
  if (tally.isMajority("granted")) return "granted";
  if (tally.mayBeMajority("granted")) return null;
  if (tally.isMajority("granted", "too_low")) return "raise";
  if (tally.preventsMajority("held", "reserved")) return "refused";
  if (tally.isOpen) return null;
  if (tally.isMajority("granted", "too_low", "held", "reserved")) return "refused";
  return tally.preventsMajority("not_voting") ? "not_voting" : "silent";
}

/** The highest ballot that the votes report. */
export function highestStored(votes: readonly (Vote | undefined)[]): number {
  let highest = 0;
  for (const vote of votes) {
    if (vote && "stored" in vote) highest = Math.max(highest, vote.stored);
  }
  return highest;
}

/**
 * The local deadline: until then a majority certainly keeps the lease. Each node keeps it for the
 * time in its answer, measured from just before the request was sent, minus the margin for its
 * clock.
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
  return reachedByMajority(ends, votes.length);
}

export type RenewalJudgement = "renewed" | "gone" | "unknown";

/**
 * The result of a renewal; null while it is open. Only certain losses end a lease: a node that is
 * silent or does not vote may still keep it. A renewal never creates a lease: nodes that granted it
 * again count only if some node has kept it all the time.
 */
export function judgeRenewal(
  answers: readonly (NodeRenewal | undefined)[],
): RenewalJudgement | null {
  const tally = new Tally(answers);
  const isKept = answers.some((answer) => answer?.type === "granted" && !answer.isRetaken);
  if (tally.isMajority("granted") && isKept) return "renewed";
  if (tally.preventsMajority("replaced", "revoked", "missing")) return "gone";
  if (tally.isOpen) return null;
  return tally.isMajority("granted") ? "gone" : "unknown";
}

/**
 * Whether the lease existed; null while that is open. True if a majority says so, or if too few
 * nodes deny it to be sure. A node that may have forgotten the lease is no evidence against it.
 */
export function judgeRelease(
  answers: readonly (NodeRelease | undefined)[],
): boolean | "silent" | null {
  const tally = new Tally(answers);
  if (tally.isMajority("released")) return true;
  if (tally.preventsMajority("absent")) return false;
  if (tally.isOpen) return null;
  if (!tally.isMajority("released", "absent", "unsure")) return "silent";
  return tally.count("released") > 0;
}

/** What a waiter's look found: whether it should ask for votes. Null while that is open. */
export function judgeLook(
  answers: readonly (LookReply | undefined)[],
): "open" | "held" | "silent" | null {
  const tally = new Tally(answers);
  if (tally.isMajority("open")) return "open";
  if (tally.preventsMajority("held", "reserved")) return "held";
  if (tally.isOpen) return null;
  return tally.isMajority("open", "held", "reserved") ? "held" : "silent";
}

/** Whether the node may have voted for this proposer, or may still do so. */
export function mayHaveVoted(answer: Answer): boolean {
  const type = answer?.type;
  return type === undefined || type === "granted" || type === "time_out" || type === "error";
}

/** `not_applied` where every node has said that it kept nothing. */
export function outcomeOf(answers: Answers): Outcome {
  const isUnknown = answers.some((answer) => {
    const isRefusal = answer?.type === "error" && isNotApplied(answer.error);
    return mayHaveVoted(answer) && !isRefusal;
  });
  return isUnknown ? "unknown" : "not_applied";
}

function isNotApplied(error: Error): boolean {
  return error instanceof StoreError && error.outcome === "not_applied";
}

export function isNotVoting(vote: AnyAnswer, why: string): boolean {
  return vote?.type === "not_voting" && vote.why === why;
}

/** Whether enough nodes keep the lock for this owner that no other owner can have a majority. */
export function isHeldBy(answers: Answers, { record }: Held): boolean {
  const same = answers.filter(
    (vote) => vote?.type === "held" && vote.record?.value === record?.value,
  );
  return preventsMajority(same.length, answers.length);
}

/** The time until enough nodes vote for a majority. */
export function votesInMs(answers: Answers): number {
  return majorityReadyAt(
    answers.map((vote) => (vote?.type === "not_voting" && vote.why === "young" ? vote.waitMs : 0)),
  );
}

/** Whether too many nodes would refuse again, whenever they are asked. */
export function cannotReachMajority(answers: readonly AnyAnswer[]): boolean {
  return preventsMajority(answers.filter(isFinalAnswer).length, answers.length);
}

function isFinalAnswer(answer: AnyAnswer): boolean {
  switch (answer?.type) {
    case "too_high":
    case "foreign":
      return true;
    case "not_voting":
      return answer.why === "other_set";
    default:
      return isFinalRefusal(answer);
  }
}

/** A server that is too old or a missing right: asking again would not help. */
export function isFinalRefusal(answer: AnyAnswer): boolean {
  return answer?.type === "error" && isFinal(answer.error);
}

/** The number of waiters ahead of this one, at the node that knows of the most. */
export function aheadOf(answers: Answers): number {
  let ahead = 0;
  for (const answer of answers) {
    if (answer && "ahead" in answer) ahead = Math.max(ahead, answer.ahead);
  }
  return ahead;
}

/** The holder or mark that blocks the lock, from the node that knows most about it. */
export function busyBy(answers: Answers, nowMs: number): Busy {
  let holder: HolderView | null = null;
  for (const answer of answers) {
    if (answer?.type !== "held") continue;
    const { record, remainingMs } = answer;
    if (record?.kind === "done") {
      return { type: "busy", holder: null, mark: markView(record, remainingMs) };
    }
    const view = holderView(record, remainingMs, nowMs);
    if (!holder || view.token > holder.token || hasMore(view, holder)) holder = view;
  }
  return { type: "busy", holder, mark: null };
}

function hasMore(view: HolderView, other: HolderView): boolean {
  return view.token === other.token && Object.keys(other.meta).length === 0;
}

/** The time until leases and reservations have ended at enough nodes for a majority. */
export function dueInMs(answers: Answers): number {
  return majorityReadyAt(
    answers.map((answer) => {
      if (answer?.type === "held" || answer?.type === "reserved") return answer.remainingMs;
      return answer?.type === "granted" || answer?.type === "open" ? 0 : Number.POSITIVE_INFINITY;
    }),
  );
}
