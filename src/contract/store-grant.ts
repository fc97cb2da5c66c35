import type { Claim, Grant, GrantListener, Loss } from "./store.js";

/** A lease, as far as its store needs to see it: the store reads the grant from it. */
export interface GrantHolder {
  readonly held: { readonly grant: Grant };
}

/** Base class of all grants. The deadline only ever moves forward, and a grant ends only once. */
export abstract class StoreGrant implements Grant {
  /** Distinguishes a grant from `Busy`. */
  readonly type = "granted";
  /** The claim that was granted. */
  readonly claim: Claim;
  /** The fencing token. */
  abstract readonly token: bigint;
  /** How many tokens, starting at `token`, are reserved for local waiters to take turns. */
  abstract readonly span: number;
  /** Lets another process find this grant in the store; null if the store needs no locator. */
  abstract readonly locator: string | null;
  /** When this process must stop relying on the grant, by the clock of `Store.runtime`. */
  deadlineMs: number;
  /** Set by the client while it holds the grant. */
  listener: GrantListener | null = null;
  /** Why the grant ended; null until then. */
  loss: Loss | null = null;

  constructor(claim: Claim, deadlineMs: number) {
    this.claim = claim;
    this.deadlineMs = deadlineMs;
  }

  /** Whether this token is in the grant's span. */
  hasToken(token: bigint): boolean {
    return token >= this.token && token < this.token + BigInt(this.span);
  }

  /** Moves the deadline forward. Ignores answers that arrive out of order or after the end. */
  extend(deadlineMs: number): void {
    if (!this.loss && deadlineMs > this.deadlineMs) this.deadlineMs = deadlineMs;
  }

  /** Ends the grant and calls its listener. Only the first call has an effect. */
  end(loss: Loss): void {
    if (this.loss) return;
    this.loss = loss;
    // Call the listener before moving the deadline: a thread that sees the deadline move must
    // already find the reason in its port.
    tellEnd(this.listener, loss);
    // The caller may not have received the grant yet, and must find its deadline in the past.
    // rule: ended-grant-is-not-believed
    this.deadlineMs = Number.NEGATIVE_INFINITY;
  }
}

/** Calls the listener. Rethrows its error later, because the caller may have more grants to end. */
export function tellEnd(listener: GrantListener | null, loss: Loss): void {
  try {
    listener?.onEnd(loss);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
