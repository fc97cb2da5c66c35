import { type NodeVote, type Outcome, QuorumError, StoreError } from "../../errors.js";
import type { Answers } from "./answers.js";
import type { RedlockNode } from "./redlock-node.js";
import type { NodeRelease, NodeRenewal } from "./vote.js";

type AnyAnswer = Answers[number] | NodeRenewal | NodeRelease;

const BOOTSTRAP =
  'If nobody can hold a lock of these nodes, say so with bootstrap: "now" (?bootstrap=now).';

/** The error for answers that make no majority: what each node said, and what to do about it. */
export function quorumError(
  nodes: readonly RedlockNode[],
  answers: readonly AnyAnswer[],
  { lockName, outcome = "not_applied" }: { lockName?: string; outcome?: Outcome } = {},
): QuorumError {
  const votes = nodes.map(({ name }, at) => nodeVote(name, answers[at]));
  const context = { lockName, store: "redlock", outcome, retryable: !isFinal(answers) };
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
      return { node, vote: "held", detail: "held by another" };
    case "reserved":
      return { node, vote: "held", detail: "kept for another, who waited" };
    case "too_low":
      return { node, vote: "too_low", detail: `too low: it knows of ${answer.stored}` };
    case "too_high":
      return { node, vote: "too_high", detail: "more than a year ahead of its clock" };
    case "asleep":
      return { node, vote: "not_voting", detail: sleepText(answer) };
    case "error":
      return { node, vote: "error", detail: answer.error.message };
    case "missing":
    case "revoked":
    case "absent":
    case "unsure":
      return { node, vote: "missing", detail: "it does not know the lease" };
    default:
      return { node, vote: "time_out", detail: "no answer in time" };
  }
}

function sleepText(answer: Extract<AnyAnswer, { type: "asleep" }>): string {
  switch (answer.why) {
    case "young":
      return (
        `restarted: votes in ${Math.ceil(answer.waitMs / 1000)} s, ` +
        "when no lease that it may have forgotten lives"
      );
    case "other_set":
      return `belongs to the nodes ${answer.set}`;
    case "short":
      return `votes for leases of up to ${answer.maxTtlMs} ms`;
    default:
      return "restarted, or without data: waits for a majority of the others who remember";
  }
}

function advice(answers: readonly AnyAnswer[]): string {
  const whys = answers.flatMap((answer) => (answer?.type === "asleep" ? [answer.why] : []));
  if (whys.includes("other_set")) {
    return (
      "All clients must name the same nodes, by the same names. If these are the right ones: " +
      `end all clients of the others. ${BOOTSTRAP}`
    );
  }
  if (answers.some((answer) => answer?.type === "too_high")) return "Set the clock of this client.";
  if (whys.includes("young")) return `Wait, or raise storeTimeoutMs. ${BOOTSTRAP}`;
  if (whys.length > 0) return `Bring back the nodes that do not answer. ${BOOTSTRAP}`;
  return "Bring back the nodes that do not answer, or give them more time (nodeTimeoutMs).";
}

function isFinal(answers: readonly AnyAnswer[]): boolean {
  return answers.some(
    (answer) =>
      (answer?.type === "asleep" && answer.why === "other_set") ||
      answer?.type === "too_high" ||
      (answer?.type === "error" && answer.error instanceof StoreError && !answer.error.retryable),
  );
}
