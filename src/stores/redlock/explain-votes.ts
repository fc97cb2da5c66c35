import { type NodeVote, QuorumError, type StoreError } from "../../errors.js";
import { whyUnreachable } from "../redis-client/unreachable.js";
import type { RedlockNode } from "./redlock-node.js";

/** The same error with the reason for each node that gave no answer, where one is found. */
export async function explainVotes(
  error: StoreError,
  nodes: readonly RedlockNode[],
): Promise<StoreError> {
  if (!(error instanceof QuorumError)) return error;
  let cause = error.cause;
  const votes = await Promise.all(
    error.votes.map(async (vote, at): Promise<NodeVote> => {
      const isSilent = vote.vote === "time_out" || vote.vote === "error";
      const node = isSilent ? nodes[at] : undefined;
      const why = node ? await whyUnreachable(node.driver) : null;
      if (!why) return vote;
      cause = why;
      return { ...vote, detail: `no answer (${why.message})` };
    }),
  );
  const { outcome, retryable, lockName, store, advice } = error;
  return new QuorumError(votes, advice, { outcome, retryable, lockName, store, cause });
}
