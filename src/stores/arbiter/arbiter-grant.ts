import { assert } from "../../assert.js";
import { whole } from "../../foreign-data.js";
import type { Claim, Grant } from "../../store.js";
import type { Run } from "./run.js";

/** A grant of an arbiter, with what its release has to say. */
export class ArbiterGrant implements Grant {
  readonly type = "granted";
  readonly locator = null;
  /** Its owner is the one that the store knows: in a run, the owner that had the first turn. */
  readonly claim: Claim;
  readonly key: string;
  readonly span: number;
  /** A number takes less than a `bigint`, which is made when it is asked for. */
  readonly #token: number;
  /** The run that this grant is a turn of. */
  run: Run | null = null;
  /**
   * Until when (store time) a copy of its acquire may still arrive: a release before that leaves a
   * tombstone. 0 when each request of the owner was answered.
   */
  tombstoneUs = 0;
  deadlineMs: number;
  isHandoff = false;
  /** Its release is under way: no caller relies on it, and no other release may overtake. */
  isGivenBack = false;
  keptBy: unknown;
  #isGone = false;

  /** Throws if the token cannot be one. */
  constructor(
    claim: Claim,
    key: string,
    granted: { readonly token: number; readonly span: number },
    deadlineMs: number,
  ) {
    this.claim = claim;
    this.key = key;
    this.#token = whole(granted.token);
    // The other tokens of a run are for its followers.
    this.span = Math.min(granted.span, claim.span);
    this.deadlineMs = deadlineMs;
  }

  get owner(): string {
    return this.claim.owner;
  }

  get token(): bigint {
    return BigInt(this.#token);
  }

  /** The last of the tokens that are reserved for its turns. */
  get lastToken(): number {
    return this.#token + this.span - 1;
  }

  /** The token by which the store knows the grant. */
  get firstToken(): bigint {
    return this.run?.firstToken ?? this.token;
  }

  /** Deadlines only move on: an answer that comes out of order tells nothing new. */
  extend(deadlineMs: number): void {
    if (!this.#isGone && deadlineMs > this.deadlineMs) this.deadlineMs = deadlineMs;
  }

  /** The store has ended the grant: a caller that gets it only now finds its deadline passed. */
  end(): void {
    this.#isGone = true;
    this.deadlineMs = Number.NEGATIVE_INFINITY;
  }
}

/** The grant as this family made it: a store is given its own grants only. */
export function ownGrant(grant: Grant): ArbiterGrant {
  assert(grant instanceof ArbiterGrant, "a store is given its own grants only");
  return grant;
}
