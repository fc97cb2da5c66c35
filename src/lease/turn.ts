import type { CallContext, LockKind } from "../events.js";

/** The call that a lease was acquired by, as its events tell of it. */
export interface Origin {
  readonly kind: LockKind;
  readonly context: CallContext | undefined;
  /** See `AcquireEvent.traceparent`. */
  readonly traceparent?: string | undefined;
}

/** One use of a hold: all of it, or one turn on it. */
export interface Turn extends Origin {
  readonly token: bigint;
  readonly startMs: number;
}
