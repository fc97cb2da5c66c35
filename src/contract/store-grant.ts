import type { Claim, Grant, GrantListener, Loss } from "./store.js";

/** A lease that shows its grant to its store. */
export interface GrantHolder {
  readonly held: { readonly grant: Grant };
}

/** A grant: its deadline only moves on, and the grant ends once. */
export abstract class StoreGrant implements Grant {
  /** Tells a grant from `Busy`. */
  readonly type = "granted";
  /** The claim that was granted. */
  readonly claim: Claim;
  /** The fencing token. */
  abstract readonly token: bigint;
  /** How many tokens, from `token` on, are reserved for turns of local waiters. */
  abstract readonly span: number;
  /** The text by which the store finds this grant again from another process; null if none. */
  abstract readonly locator: string | null;
  /** The time, by the store's clock, until which this process may rely on the grant. */
  deadlineMs: number;
  /** Set by the client while it keeps the grant. */
  listener: GrantListener | null = null;
  /** Why the grant has ended; null before that. */
  loss: Loss | null = null;

  constructor(claim: Claim, deadlineMs: number) {
    this.claim = claim;
    this.deadlineMs = deadlineMs;
  }

  /** Whether one of its turns has this token. */
  hasToken(token: bigint): boolean {
    return token >= this.token && token < this.token + BigInt(this.span);
  }

  /** An answer that comes out of order never shortens the grant, nor revives one that has ended. */
  extend(deadlineMs: number): void {
    if (!this.loss && deadlineMs > this.deadlineMs) this.deadlineMs = deadlineMs;
  }

  /** Ends the grant and tells its listener. Only the first call has an effect. */
  end(loss: Loss): void {
    if (this.loss) return;
    this.loss = loss;
    // The listener first: another thread that sees the deadline move finds the reason in its port.
    tellEnd(this.listener, loss);
    // The caller may not have the grant yet: when it gets the grant, the deadline has passed.
    // rule: ended-grant-is-not-believed
    this.deadlineMs = Number.NEGATIVE_INFINITY;
  }
}

/** Throws the error of a listener later: the caller may have more grants to end. */
export function tellEnd(listener: GrantListener | null, loss: Loss): void {
  try {
    listener?.onEnd(loss);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
