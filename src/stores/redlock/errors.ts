/** The errors of this store: of one node, and of nodes that make no majority. */
import { type NodeVote, type Outcome, QuorumError, StoreError } from "../../errors/index.js";
import { plainError, whyUnreachable } from "../redis-client/errors.js";
import { type AnyAnswer, cannotReachMajority, isFinalRefusal } from "./answers.js";
import type { Foreign } from "./protocol.js";
import type { RedlockNode } from "./quorum.js";

const BOOTSTRAP =
  'If no process can hold a lock of these nodes, set bootstrap: "now" (?bootstrap=now).';

/** The error for whatever the client of one node threw: it names the node. */
export function nodeError(node: string, cause: unknown): StoreError {
  const { message, outcome, retryable, cause: origin } = plainError(cause, "redlock");
  const context = { outcome, retryable, store: "redlock", cause: origin };
  return new StoreError(nodePrefix(node) + message, context);
}

function nodePrefix(node: string): string {
  return `Node ${node}: `;
}

/** The vote of a node that failed. A `QuorumError` names the node before the detail. */
export function failedVote(node: string, { message }: Error): NodeVote {
  const prefix = nodePrefix(node);
  const detail = message.startsWith(prefix) ? message.slice(prefix.length) : message;
  return { node, vote: "error", detail };
}

/** The error for answers that make no majority: what each node said, and what to do about it. */
export function quorumError(
  nodes: readonly RedlockNode[],
  answers: readonly AnyAnswer[],
  { lockName, outcome = "not_applied" }: { lockName?: string; outcome?: Outcome } = {},
): QuorumError {
  const votes = nodes.map(({ name }, at) => nodeVote(name, answers[at]));
  const context = { lockName, store: "redlock", outcome, retryable: !cannotReachMajority(answers) };
  const cause = answers.find((answer) => answer?.type === "error");
  return new QuorumError(votes, advice(answers), {
    ...context,
    ...(cause?.type === "error" ? { cause: cause.error } : {}),
  });
}

function nodeVote(node: string, answer: AnyAnswer): NodeVote {
  switch (answer?.type) {
    case "open":
      return { node, vote: "granted", detail: "answered" };
    case "granted":
    case "released":
      return { node, vote: "granted", detail: "granted" };
    case "held":
    case "replaced":
      return { node, vote: "held", detail: "held by another owner" };
    case "reserved":
      return { node, vote: "held", detail: "kept for a waiter that was woken" };
    case "too_low":
      return {
        node,
        vote: "too_low",
        detail: `the ballot is too low: it knows of ${answer.stored}`,
      };
    case "too_high":
      return {
        node,
        vote: "too_high",
        detail: "the ballot is more than a year ahead of its clock",
      };
    case "not_voting":
      return { node, vote: "not_voting", detail: notVotingText(answer) };
    case "foreign":
      return { node, vote: "foreign", detail: foreignText(answer) };
    case "error":
      return failedVote(node, answer.error);
    case "missing":
    case "revoked":
    case "absent":
    case "unsure":
      return { node, vote: "missing", detail: "it does not know the lease" };
    default:
      return { node, vote: "time_out", detail: "no answer in time" };
  }
}

function notVotingText(answer: Extract<AnyAnswer, { type: "not_voting" }>): string {
  switch (answer.why) {
    case "young":
      return (
        `restarted: votes in ${Math.ceil(answer.waitMs / 1000)} s, ` +
        "when every lease that it may have forgotten is over"
      );
    case "other_set":
      return `belongs to the nodes ${answer.set}`;
    case "short":
      return `votes for leases of up to ${answer.maxTtlMs} ms`;
    default:
      return "restarted, or lost its data: waits for a majority of nodes that remember";
  }
}

function foreignText({ key, holds }: Foreign): string {
  return holds === "ahead"
    ? `it holds a ballot more than a year ahead of its clock at "${key}"`
    : `it holds data that is not ours at "${key}": a ${holds}`;
}

/** The application names the keys of locks in the empty namespace; all other keys are ours. */
function foreignAdvice({ key }: Foreign): string {
  return key.includes("holdfast:")
    ? "The key belongs to this store: docs/stores/redlock.md#foreign-data says what to delete."
    : "The name of this lock is a key of another program: choose a namespace (?namespace=).";
}

function advice(answers: readonly AnyAnswer[]): string {
  const whys = answers.flatMap((answer) => (answer?.type === "not_voting" ? [answer.why] : []));
  if (whys.includes("other_set")) {
    return (
      "All clients must name the same nodes, by the same names. If these nodes are the right " +
      `ones: end all clients that name other nodes. ${BOOTSTRAP}`
    );
  }
  const foreign = answers.find((answer) => answer?.type === "foreign");
  if (foreign?.type === "foreign") return foreignAdvice(foreign);
  if (answers.some((answer) => answer?.type === "too_high")) return "Set the clock of this client.";
  if (answers.some(isFinalRefusal)) {
    return "Correct what the nodes refuse: docs/stores/redlock.md has the versions and the rights.";
  }
  if (whys.includes("young")) return `Wait, or raise storeTimeoutMs. ${BOOTSTRAP}`;
  if (whys.length > 0) return `Bring back the nodes that do not answer. ${BOOTSTRAP}`;
  return "Bring back the nodes that do not answer, or give them more time (nodeTimeoutMs).";
}

/** The same error with the reason for each node that gave no answer, where one is found. */
export async function explainVotes(
  error: StoreError,
  nodes: readonly RedlockNode[],
): Promise<StoreError> {
  const isCounted = error instanceof QuorumError;
  const silent = nodes.map(({ name }) => nodeVote(name, { type: "time_out" }));
  let cause = error.cause;
  const votes = await Promise.all(
    (isCounted ? error.votes : silent).map(async (vote, at): Promise<NodeVote> => {
      const isSilent = vote.vote === "time_out" || vote.vote === "error";
      const node = isSilent ? nodes[at] : undefined;
      const why = node ? await whyUnreachable(node.driver) : null;
      if (!why) return vote;
      cause = why;
      return { ...vote, detail: `no answer (${why.message})` };
    }),
  );
  // The call ended before it counted votes, and no reason for the silence was found.
  if (!isCounted && cause === error.cause) return error;
  const { outcome, retryable, lockName, store } = error;
  const advised = isCounted ? error.advice : advice([]);
  return new QuorumError(votes, advised, { outcome, retryable, lockName, store, cause });
}
