import type { Claim, Grant } from "../../store.js";

/** A grant of an arbiter, with what its release has to say. */
export class ArbiterGrant implements Grant {
  readonly type = "granted";
  readonly locator = null;
  readonly claim: Claim;
  readonly key: string;
  readonly token: bigint;
  readonly span: number;
  /**
   * Until when (store time) a copy of its acquire may still arrive: a release before that leaves a
   * tombstone. 0 when the one reply to the one request was seen, before the grant or after it.
   */
  tombstoneUs: number;
  deadlineMs: number;
  isHandoff = false;
  /** Its release is under way: nobody relies on it, and no other release may overtake that one. */
  isGivenBack = false;
  #isGone = false;

  constructor(
    claim: Claim,
    key: string,
    granted: { readonly token: number; readonly span: number },
    deadlineMs: number,
    tombstoneUs: number,
  ) {
    this.claim = claim;
    this.key = key;
    this.token = BigInt(granted.token);
    this.span = granted.span;
    this.deadlineMs = deadlineMs;
    this.tombstoneUs = tombstoneUs;
  }

  /** Deadlines only move on: an answer that comes out of order tells nothing new. */
  extend(deadlineMs: number): void {
    if (!this.#isGone && deadlineMs > this.deadlineMs) this.deadlineMs = deadlineMs;
  }

  /** The store gave it to nobody, or to another: who hears of this grant only now finds it over. */
  end(): void {
    this.#isGone = true;
    this.deadlineMs = Number.NEGATIVE_INFINITY;
  }
}
