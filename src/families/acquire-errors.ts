import type { Busy, Claim, Grant } from "../contract/store.js";
import { StoreError } from "../errors/index.js";
import type { Refused } from "../rules/ledger-command.js";

/** This owner can never hold, through no fault of the caller: the next attempt is under another. */
export interface Again {
  readonly type: "again";
  /** `late`: the grant arrived when the lease was over already. `ended`: it was taken away. */
  readonly reason: "late" | "ended";
}

/** The end of one attempt of an acquisition, under one owner. */
export type AttemptResult<G extends Grant = Grant> = G | Busy | Again;

/** After so many grants in a row that arrived too late, the ttl is too short for this store. */
export const MAX_LATE_GRANTS = 3;

export function lateGrantError(claim: Claim, store: string): StoreError {
  return new StoreError(
    `The store answers more slowly than a lease of ${claim.ttlMs} ms lasts: raise ttlMs.`,
    { outcome: "not_applied", lockName: claim.name, store },
  );
}

/** The store said nothing for `silentMs`; `lastError` is the failure of the last try, if any. */
export function silenceError(silentMs: number, lastError: unknown): StoreError {
  const why = lastError instanceof Error ? ` ${lastError.message}` : "";
  return new StoreError(`The store was silent for ${Math.round(silentMs)} ms.${why}`, {
    outcome: "unknown",
    cause: lastError,
  });
}

const WHY: Record<Refused["reason"], string> = {
  terms:
    "The store refused a request whose ttlMs, weight, limit or maxLocalTurns is out of bounds: " +
    "use one version of holdfast for all programs that share a store.",
  seen:
    "The store's clock is more than a year behind a token that this process was granted before: " +
    "set the clock right. If that token was wrong, restart this process.",
  tokens:
    "The last token of this namespace, or the store's clock, is too high to count on from: set " +
    "the clock right, or use another namespace and reset whatever compares tokens.",
};

/** The error for a command that the ledger refused: nothing was done, and the same fails again. */
export function refusalError({ reason }: Refused): StoreError {
  return new StoreError(WHY[reason], { outcome: "not_applied", retryable: false });
}
