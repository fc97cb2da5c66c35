import { type ErrorContext, HoldfastError } from "./holdfast-error.js";
import { InternalError } from "./internal-error.js";

/** Whether a failed call may have taken effect in the store. */
export type Outcome = "not_applied" | "unknown";

/** The store failed or stayed silent. */
export class StoreError extends HoldfastError {
  /** {@inheritDoc HoldfastError.brand} */
  static override readonly brand: string = "StoreError";
  /** {@inheritDoc HoldfastError.code} */
  override readonly code: string = "HF_STORE";
  /** `unknown`: the call may have taken effect. */
  readonly outcome: Outcome;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  /** The time after which the same call may succeed; undefined where that is not known. */
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    {
      outcome,
      retryable = true,
      retryAfterMs,
      ...context
    }: ErrorContext & { outcome: Outcome; retryable?: boolean; retryAfterMs?: number | undefined },
  ) {
    super(message, context);
    this.outcome = outcome;
    this.retryable = retryable;
    this.retryAfterMs = retryAfterMs;
  }
}

/** True for an error that the same call would meet again, so that no further try is of use. */
export function isFinal(error: unknown): error is StoreError | InternalError {
  if (error instanceof StoreError) return !error.retryable;
  return error instanceof InternalError;
}

/** Too few replicas had a grant in time: it does not count, and was given back. */
export class ReplicationError extends StoreError {
  /** {@inheritDoc HoldfastError.brand} */
  static override readonly brand: string = "ReplicationError";
  /** {@inheritDoc HoldfastError.code} */
  override readonly code = "HF_STORE_REPLICATION";
  /** How many replicas had to have it. */
  readonly asked: number;
  /** How many said so within `timeoutMs`. */
  readonly acknowledged: number;
  /** How long the replicas were given (`replicaTimeoutMs`). */
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

/** The answer of one of several independent nodes. */
export interface NodeVote {
  /** The name of the node: host and port, or as `nodeNames` has it. */
  readonly node: string;
  /** The answer in one word; only `granted` counts towards a majority. */
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
  /** {@inheritDoc HoldfastError.brand} */
  static override readonly brand: string = "QuorumError";
  /** {@inheritDoc HoldfastError.code} */
  override readonly code = "HF_STORE_QUORUM";
  /** One answer for each node. */
  readonly votes: readonly NodeVote[];
  /** The sentence of the message that says how to get a majority. */
  readonly advice: string;

  constructor(
    votes: readonly NodeVote[],
    advice: string,
    context: ErrorContext & { outcome: Outcome; retryable?: boolean },
  ) {
    const said = votes.map(({ node, detail }) => `${node}: ${detail.replace(/\.$/, "")}`);
    const lock = context.lockName === undefined ? "" : `Lock "${context.lockName}": `;
    const missing =
      votes.length === 1 ? "No vote of the one server" : `No majority of the ${votes.length} nodes`;
    const text = `${missing} (${said.join("; ")}). ${advice}`;
    super(lock + text, context);
    this.votes = votes;
    this.advice = advice;
  }
}
