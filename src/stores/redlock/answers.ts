/** What a round of answers says to whoever was not granted. */
import { type Outcome, StoreError } from "../../errors.js";
import type { Busy, HolderView } from "../../store.js";
import { majorityOf } from "./ballot.js";
import { holderView, markView } from "./name-record.js";
import type { Failure, Held, NodeRelease, NodeRenewal, Sight, Vote } from "./vote.js";

type Answer = Vote | Sight | Failure | undefined;
export type Answers = readonly Answer[];
/** Whatever a node was asked for. */
export type AnyAnswer = Answer | NodeRenewal | NodeRelease;

/** Whoever may have voted for us, or may still do so, has something to give back. */
export function mayHaveVoted(answer: Answer): boolean {
  const type = answer?.type;
  return type === undefined || type === "granted" || type === "time_out" || type === "error";
}

/** `not_applied` where every node has said that it kept nothing. */
export function outcomeOf(answers: Answers): Outcome {
  const isUnknown = answers.some((answer) => {
    const isRefusal = answer?.type === "error" && isKnown(answer.error);
    return mayHaveVoted(answer) && !isRefusal;
  });
  return isUnknown ? "unknown" : "not_applied";
}

function isKnown(error: Error): boolean {
  return error instanceof StoreError && error.outcome === "not_applied";
}

export function isAsleep(vote: Answer, why: string): boolean {
  return vote?.type === "asleep" && vote.why === why;
}

/** So many nodes keep it for one owner that nobody else can have a majority. */
export function isHeldBy(answers: Answers, { record }: Held): boolean {
  const same = answers.filter(
    (vote) => vote?.type === "held" && vote.record?.value === record?.value,
  );
  return same.length > answers.length - majorityOf(answers.length);
}

/** When enough nodes will vote that a majority is there. */
export function wakesInMs(answers: Answers): number {
  const waits = answers.map((vote) => {
    return vote?.type === "asleep" && vote.why === "young" ? vote.waitMs : 0;
  });
  waits.sort((a, b) => a - b);
  return waits[majorityOf(answers.length) - 1] ?? 0;
}

/** So many nodes will say the same again, whenever they are asked, that no majority can come. */
export function isHopeless(answers: readonly AnyAnswer[]): boolean {
  return answers.filter(isFinal).length > answers.length - majorityOf(answers.length);
}

function isFinal(answer: AnyAnswer): boolean {
  switch (answer?.type) {
    case "too_high":
    case "foreign":
      return true;
    case "asleep":
      return answer.why === "other_set";
    default:
      return isRefusal(answer);
  }
}

/** A server that is too old, a right that is missing: to ask again would not help. */
export function isRefusal(answer: AnyAnswer): boolean {
  if (answer?.type !== "error") return false;
  return answer.error instanceof StoreError && !answer.error.retryable;
}

/** How many wait before us, at the node that knows of most. */
export function aheadOf(answers: Answers): number {
  let ahead = 0;
  for (const answer of answers) {
    if (answer && "ahead" in answer) ahead = Math.max(ahead, answer.ahead);
  }
  return ahead;
}

/** Who is in the way, as the node says that knows most. */
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

/** When so many nodes are free by themselves that a majority is within reach. */
export function dueInMs(answers: Answers): number {
  const times = answers.map((answer) => {
    if (answer?.type === "held" || answer?.type === "reserved") return answer.remainingMs;
    return answer?.type === "granted" || answer?.type === "open" ? 0 : Number.POSITIVE_INFINITY;
  });
  times.sort((a, b) => a - b);
  return times[majorityOf(answers.length) - 1] ?? Number.POSITIVE_INFINITY;
}
