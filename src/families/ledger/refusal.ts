import { StoreError } from "../../errors/index.js";
import type { Refused } from "../../rules/ledger-command.js";

const WHY: Record<Refused["reason"], string> = {
  terms:
    "The store refused a request whose ttlMs, weight, limit or maxLocalTurns is out of bounds: " +
    "use one version of holdfast for all programs that share a store.",
  seen:
    "The store's clock is more than a year behind a token that this process was granted before: " +
    "set the clock right. If that token was wrong, restart this process.",
  tokens:
    "The last token of this namespace, or the store's clock, is too high to count on from: set " +
    "the clock right, or use another namespace and let whatever compares tokens start anew.",
};

/** The error for a command that the ledger refused: nothing was done, and the same fails again. */
export function refusalError({ reason }: Refused): StoreError {
  return new StoreError(WHY[reason], { outcome: "not_applied", retryable: false });
}
