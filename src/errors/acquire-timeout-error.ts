import { withJson } from "../rules/json.js";
import { type ErrorContext, HoldfastError } from "./holdfast-error.js";
import { shown } from "./shown.js";

/** The holder of the lock when the wait was over. */
export interface BlockedBy {
  /** The fencing token of that holder, as `revoke` takes it; 0 for a key of another program. */
  readonly token: bigint;
  /** How long it had held the lock by then. */
  readonly heldMs: number;
  /** Its `meta`: `host`, `pid` and `label`, unless that process chose otherwise. */
  readonly meta: Readonly<Record<string, unknown>>;
}

/** The lock was not free within `waitMs`. */
export class AcquireTimeoutError extends HoldfastError {
  /** {@inheritDoc HoldfastError.brand} */
  static override readonly brand: string = "AcquireTimeoutError";
  /** {@inheritDoc HoldfastError.code} */
  override readonly code = "HF_ACQUIRE_TIMEOUT";
  /** How long the call waited at most. */
  readonly waitMs: number;
  /** The holder in the way; null where the store did not tell. */
  readonly holder: BlockedBy | null;
  /** Whether that holder is a lease of the Holdfast that asked: this process waits for itself. */
  readonly isOwn: boolean;

  constructor(
    waitMs: number,
    holder: BlockedBy | null,
    context: ErrorContext & { readonly isOwn?: boolean },
  ) {
    const { isOwn = false } = context;
    const by = holder ? ` It is held by ${describe(holder, isOwn)}.` : "";
    super(
      `Lock "${context.lockName}" was not acquired within ${Math.round(waitMs)} ms.${by} ` +
        "Wait longer (waitMs), or treat it as busy (tryAcquire).",
      context,
    );
    this.isOwn = isOwn;
    this.waitMs = waitMs;
    this.holder = holder && withJson({ ...holder });
  }
}

function describe({ meta, heldMs, token }: BlockedBy, isOwn: boolean): string {
  // A store that shares its keys with other programs shows a holder of those with token 0.
  if (token === 0n) return "another program, by a key that Holdfast did not write";
  const { host, pid, label, inside: _, ...more } = meta;
  const who = [
    isOwn && "this very process",
    label,
    host && pid ? `${host} (pid ${pid})` : host,
    `token ${token}`,
  ];
  const about = Object.keys(more).length > 0 ? `, ${shown(more)}` : "";
  return `${who.filter(Boolean).join(", ")} for ${Math.round(heldMs)} ms${about}`;
}
