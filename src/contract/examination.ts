/**
 * How much a finding matters. `danger`: without any further fault, two may hold a lock, or locks do
 * not work. `warning`: a fault that must be expected, such as a restart, loses leases, lets two
 * hold a lock, or stops the locks. `note`: worth knowing. `skipped`: the check could not be done;
 * `what` says why.
 */
export type Severity = "ok" | "note" | "warning" | "danger" | "skipped";

/** The result of one check. */
export interface Finding {
  /** Stable, for scripts and for the table of checks: `redis/eviction`. */
  readonly id: string;
  /** How much the finding matters. */
  readonly severity: Severity;
  /** The state that was seen, in one sentence. */
  readonly what: string;
  /** Why it matters; for notes, warnings and dangers. */
  readonly why?: string;
  /** The remedy; for warnings and dangers, and for notes where there is one. */
  readonly remedy?: string;
}

/** The effect of one event on the locks of this deployment. */
export interface Survival {
  /** The event: `The server restarts`. */
  readonly event: string;
  /** Its effect on leases and waiters. */
  readonly outcome: string;
  /** No two holders believe at a time that they hold one lock. */
  readonly isSafe: boolean;
}

/** A judgement of a store and of this process, for locks of one ttl. */
export interface Examination {
  /** The name of the store: `redis`, `file`. */
  readonly store: string;
  /** In the order of the checks. */
  readonly findings: readonly Finding[];
  /** The effects of events on this very deployment; empty where the store does not tell them. */
  readonly survivals: readonly Survival[];
}

/** How to judge. */
export interface ExamineOptions {
  /** The ttl to judge times against, in milliseconds. Default: that of the locks' defaults. */
  readonly ttlMs?: number | undefined;
  /** Ends the examination; it then rejects with the reason of the signal. */
  readonly signal?: AbortSignal | undefined;
}

/** The terms of an examination. */
export interface ExamineRequest {
  /** The ttl to judge times against. */
  readonly ttlMs: number;
  /** Aborted when the answer is no longer wanted: the store stops reading. */
  readonly signal: AbortSignal;
}
