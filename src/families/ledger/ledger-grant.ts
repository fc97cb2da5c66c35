import type { Claim, Grant } from "../../contract/store.js";
import { StoreGrant } from "../../contract/store-grant.js";
import { assert } from "../../errors/assert.js";
import { whole } from "../../events/foreign-data.js";

/** A grant of an arbiter, with what its release has to say. */
export class LedgerGrant extends StoreGrant {
  readonly locator = null;
  readonly key: string;
  readonly span: number;
  /** A number takes less than a `bigint`, which is made when it is asked for. */
  readonly #token: number;
  /**
   * Until when (store time) a copy of its acquire may still arrive: a release before that leaves a
   * tombstone. 0 when each request of the owner was answered.
   */
  tombstoneUs = 0;
  isHandoff = false;
  /** Its release is under way: no caller relies on it, and no other release may overtake. */
  isReleasing = false;

  /** Throws if the token cannot be one. */
  constructor(
    claim: Claim,
    key: string,
    granted: { readonly token: number; readonly span: number },
    deadlineMs: number,
  ) {
    super(claim, deadlineMs);
    this.key = key;
    this.#token = whole(granted.token);
    this.span = granted.span;
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
}

/** The grant as this family made it: a store is given its own grants only. */
export function ownGrant(grant: Grant): LedgerGrant {
  assert(grant instanceof LedgerGrant, "a store is given its own grants only");
  return grant;
}
