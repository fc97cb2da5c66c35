import { type NodeVote, QuorumError, type StoreError } from "../../errors.js";
import { unreachable } from "../redis/unreachable.js";
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
      if (vote.vote !== "time_out" && vote.vote !== "error") return vote;
      const why = await unreachable(nodes[at]?.driver.servers() ?? []);
      if (!why) return vote;
      cause = why;
      return { ...vote, detail: `no answer (${why.message})` };
    }),
  );
  const { outcome, retryable, lockName, store, advice } = error;
  return new QuorumError(votes, advice, { outcome, retryable, lockName, store, cause });
}
