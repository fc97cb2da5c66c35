import type { Claim, Grant } from "../../contract/store.js";
import { StoreGrant } from "../../contract/store-grant.js";
import { assert } from "../../errors/assert.js";
import { whole } from "../../events/foreign-data.js";

/** A grant of an arbiter, with the data that its release needs. */
export class LedgerGrant extends StoreGrant {
  readonly locator = null;
  readonly key: string;
  readonly span: number;
  /** Stored as a number, which takes less memory than a `bigint`. */
  readonly #token: number;
  /**
   * Until when, in store time, a release must leave a tombstone, because a copy of the acquire may
   * still arrive. 0 if every request of the owner was answered.
   */
  tombstoneUs = 0;
  isHandoff = false;
  /** Set once the release has started. No caller relies on the grant after that. */
  isReleasing = false;

  /** Throws if the token is not a valid one. */
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

  /** The last token of the span. */
  get lastToken(): number {
    return this.#token + this.span - 1;
  }
}

/** Checks that this family made the grant. */
export function ownGrant(grant: Grant): LedgerGrant {
  assert(grant instanceof LedgerGrant, "a store is given its own grants only");
  return grant;
}
