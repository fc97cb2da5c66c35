import { type ErrorContext, HoldfastError } from "./holdfast-error.js";

/** Whether a failed call may have taken effect in the store. */
export type Outcome = "not_applied" | "unknown";

/** The store failed or stayed silent. */
export class StoreError extends HoldfastError {
  static override readonly brand: string = "StoreError";
  override readonly code: string = "HF_STORE";
  /** `unknown`: the call may have taken effect. */
  readonly outcome: Outcome;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;

  constructor(
    message: string,
    {
      outcome,
      retryable = true,
      ...context
    }: ErrorContext & { outcome: Outcome; retryable?: boolean },
  ) {
    super(message, context);
    this.outcome = outcome;
    this.retryable = retryable;
  }
}

/** True for an error of the store that the same call would meet again: trying again is no use. */
export function isFinal(error: unknown): error is StoreError {
  return error instanceof StoreError && !error.retryable;
}

/** Too few replicas had a grant in time: it does not count, and was given back. */
export class ReplicationError extends StoreError {
  static override readonly brand: string = "ReplicationError";
  override readonly code = "HF_STORE_REPLICATION";
  /** How many replicas had to have it. */
  readonly asked: number;
  /** How many said so within `timeoutMs`. */
  readonly acknowledged: number;
  readonly timeoutMs: number;

  constructor(asked: number, acknowledged: number, timeoutMs: number, context: ErrorContext = {}) {
    super(
      `Only ${acknowledged} of ${asked} replicas had the grant within ${timeoutMs} ms: ` +
        "check the replicas, or ask for fewer (replicas), or give them more time.",
      { ...context, outcome: "unknown", retryable: false },
    );
    this.asked = asked;
    this.acknowledged = acknowledged;
    this.timeoutMs = timeoutMs;
  }
}

/** What one of several independent nodes said. */
export interface NodeVote {
  readonly node: string;
  readonly vote:
    | "granted"
    | "held"
    | "too_low"
    | "too_high"
    | "not_voting"
    | "missing"
    | "foreign"
    | "time_out"
    | "error";
  /** The same in words, with the text of an error. */
  readonly detail: string;
}

/** Too few of several independent nodes agreed; `votes` says what each of them did. */
export class QuorumError extends StoreError {
  static override readonly brand: string = "QuorumError";
  override readonly code = "HF_STORE_QUORUM";
  readonly votes: readonly NodeVote[];
  /** What to do about it. */
  readonly advice: string;

  constructor(
    votes: readonly NodeVote[],
    advice: string,
    context: ErrorContext & { outcome: Outcome; retryable?: boolean },
  ) {
    const said = votes.map(({ node, detail }) => `${node}: ${detail.replace(/\.$/, "")}`);
    const lock = context.lockName === undefined ? "" : `Lock "${context.lockName}": `;
    const text = `No majority of the ${votes.length} nodes (${said.join("; ")}). ${advice}`;
    super(lock + text, context);
    this.votes = votes;
    this.advice = advice;
  }
}
