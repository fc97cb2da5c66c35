import type { Claim, Grant } from "./store.js";

/** A lease that shows its grant to its store. */
export interface GrantHolder {
  readonly held: { readonly grant: Grant };
}

/** A grant of one of the families: its deadline only moves on, and the grant ends once. */
export abstract class StoreGrant implements Grant {
  readonly type = "granted";
  readonly claim: Claim;
  abstract readonly token: bigint;
  abstract readonly span: number;
  abstract readonly locator: string | null;
  deadlineMs: number;
  heldBy: unknown;
  #hasEnded = false;

  constructor(claim: Claim, deadlineMs: number) {
    this.claim = claim;
    this.deadlineMs = deadlineMs;
  }

  /** Whether one of its turns has this token. */
  hasToken(token: bigint): boolean {
    return token >= this.token && token < this.token + BigInt(this.span);
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** An answer that comes out of order never shortens the grant, nor revives one that has ended. */
  extend(deadlineMs: number): void {
    if (!this.#hasEnded && deadlineMs > this.deadlineMs) this.deadlineMs = deadlineMs;
  }

  /** The store has ended the grant: a caller that gets it only now finds its deadline passed. */
  end(): void {
    this.#hasEnded = true;
    // rule: ended-grant-is-not-believed
    this.deadlineMs = Number.NEGATIVE_INFINITY;
  }
}
