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

/** The lease ended before it was released: others may hold the lock, so the work must stop. */
export class LeaseLostError extends HoldfastError {
  static override readonly brand: string = "LeaseLostError";
  override readonly code = "HF_LEASE_LOST";
  readonly reason: LossReason;
  readonly token: bigint | null;
  /** What the store or whoever revoked it had to say. */
  readonly detail: string;
  /** What the body of `run` returned, when it ended after the loss. */
  value: unknown = undefined;

  constructor(reason: LossReason, context: ErrorContext & LossContext) {
    const { token = null, detail = "", why = LOSS[reason], text } = context;
    const lost = `The lease of lock "${context.lockName}" is lost`;
    const advice = "Stop the work it guards, and check its token wherever it writes.";
    super(text ?? `${lost}: ${why}${detail && ` (${detail})`}. ${advice}`, context);
    this.reason = reason;
    this.token = token;
    this.detail = detail;
  }
}

/** The error for a use of a lease after its release: nobody took it away. */
export function releasedBefore(context: ErrorContext & LossContext): LeaseLostError {
  const advice = "release it after the last use, or acquire the lock again";
  const text = `The lease of lock "${context.lockName}" was released before this call: ${advice}.`;
  return new LeaseLostError("missing", { ...context, text });
}

export interface LossContext {
  readonly token?: bigint | null;
  readonly detail?: string;
  /** Says it better than the reason alone. */
  readonly why?: string;
  /** The whole text, where no work has to stop. */
  readonly text?: string;
}
