import type { Busy, Claim, Grant } from "../contract/store.js";
import { StoreError } from "../errors/index.js";
import type { Refused } from "../rules/ledger-command.js";

/** This owner can never hold, through no fault of the caller. The next attempt uses a new owner. */
export interface Again {
  readonly type: "again";
  /** `late`: the grant arrived after its deadline. `ended`: the grant was revoked or lost. */
  readonly reason: "late" | "ended";
}

/** The result of one attempt to acquire a lock, under one owner. */
export type AttemptResult<G extends Grant = Grant> = G | Busy | Again;

/** After this many late grants, the ttl is too short for this store, and the acquisition fails. */
export const MAX_LATE_GRANTS = 3;

export function lateGrantError(claim: Claim, store: string): StoreError {
  return new StoreError(
    `The store answers more slowly than a lease of ${claim.ttlMs} ms lasts: raise ttlMs.`,
    { outcome: "not_applied", lockName: claim.name, store },
  );
}

/** The error for a store that was silent for `silentMs`. `lastError`: why the last try failed. */
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

/** The error for a command that the ledger refused. It changed nothing, and would fail again. */
export function refusalError({ reason }: Refused): StoreError {
  return new StoreError(WHY[reason], { outcome: "not_applied", retryable: false });
}
