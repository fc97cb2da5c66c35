import { type ErrorContext, HoldfastError } from "./holdfast-error.js";

/** Why a lease ended before it was released. */
export type LossReason =
  | "expired"
  | "replaced"
  | "missing"
  | "revoked"
  | "session_ended"
  | "max_hold";

const LOSS: Record<LossReason, string> = {
  expired: "it was not renewed before its deadline (store unreachable or event loop blocked?)",
  replaced: "another owner holds the lock now",
  missing: "the store no longer knows it (data lost, or deleted by hand?)",
  revoked: "it was revoked",
  session_ended: "its session with the store ended",
  max_hold: "it reached maxHoldMs",
};

const ADVICE = "Stop the work it guards, and check its token wherever it writes.";

/** The lease ended before it was released: others may hold the lock, so the work must stop. */
export class LeaseLostError extends HoldfastError {
  /** {@inheritDoc HoldfastError.brand} */
  static override readonly brand: string = "LeaseLostError";
  /** {@inheritDoc HoldfastError.code} */
  override readonly code = "HF_LEASE_LOST";
  /** Why the lease ended. */
  readonly reason: LossReason;
  /** The token of the lost lease, to look for what was written under it. */
  readonly token: bigint | null;
  /** The reason that was given to `revoke`, or more words of the store; may be empty. */
  readonly detail: string;
  /** The value that the body of `run` returned, when it ended after the loss. */
  value: unknown = undefined;

  constructor(reason: LossReason, context: ErrorContext & LossContext) {
    const { token = null, detail = "", text } = context;
    const lost = `The lease of lock "${context.lockName}" is lost: ${LOSS[reason]}`;
    super(text ?? `${lost}${detail && ` (${detail})`}. ${ADVICE}`, context);
    this.reason = reason;
    this.token = token;
    this.detail = detail;
  }
}

/** The warning before the deadline: the lease still holds for `remainingMs`. */
export function lostSoon(
  reason: LossReason,
  remainingMs: number,
  context: ErrorContext & LossContext,
): LeaseLostError {
  if (remainingMs <= 0) return new LeaseLostError(reason, context);
  const ends = `The lease of lock "${context.lockName}" ends in ${Math.round(remainingMs)} ms`;
  const why = reason === "max_hold" ? "it reaches maxHoldMs then" : "it has not been renewed";
  return new LeaseLostError(reason, { ...context, text: `${ends}: ${why}. ${ADVICE}` });
}

/** The error for a use of a lease after its own release. */
export function releasedBefore(context: ErrorContext & LossContext): LeaseLostError {
  const advice = "release it after the last use, or acquire the lock again";
  const text = `The lease of lock "${context.lockName}" was released before this call: ${advice}.`;
  return new LeaseLostError("missing", { ...context, text });
}

/** The facts that a `LeaseLostError` carries beside those of every error. */
export interface LossContext {
  /** The token of the lost lease. */
  readonly token?: bigint | null;
  /** More words of the store, or the reason of a revocation. */
  readonly detail?: string;
  /** Takes the place of the whole message. */
  readonly text?: string;
}
