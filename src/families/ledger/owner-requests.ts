import type { Claim } from "../../contract/store.js";
import { MAX_HEARTBEAT_US } from "../../rules/bounds.js";
import type { Acquire } from "../../rules/ledger-command.js";
import type { ArbiterClient } from "./arbiter-client.js";
import type { Answer } from "./command-batcher.js";
import type { LedgerGrant } from "./ledger-grant.js";

/**
 * The acquire requests of one owner, and what they may have left in the store. A copy of a request
 * acts until its `notAfterUs` at the latest. While a copy may still arrive, a release of the owner
 * leaves a tombstone that stands for longer: an owner that gave up never holds again.
 */
export class OwnerRequests {
  readonly #key: string;
  readonly #claim: Claim;
  readonly #client: ArbiterClient;
  /** The latest store time at which any request of this owner may still act. */
  #notAfterUs = 0;
  /** Requests without an answer yet. */
  #underWay = 0;
  /** A request failed, or its connection changed: a copy of it may still arrive. */
  #wasUnanswered = false;
  #seenToken: number | undefined;
  #grant: LedgerGrant | null = null;
  /** The store answered that it knows this owner. */
  isEntered = false;

  constructor(key: string, claim: Claim, client: ArbiterClient) {
    this.#key = key;
    this.#claim = claim;
    this.#client = client;
  }

  /** The highest token this client knew when it first asked: the grant has a higher one. */
  get seenToken(): number {
    return this.#seenToken ?? 0;
  }

  /** Whether a copy of a request may still arrive at the store. */
  get mayStillArrive(): boolean {
    return this.#wasUnanswered || this.#underWay > 0;
  }

  /** How long the tombstone of a release has to stand; 0 where none is needed. */
  get tombstoneUs(): number {
    // A copy may act up to and with `notAfterUs`.
    // rule: tombstone-outlives-copies
    return this.mayStillArrive ? this.#notAfterUs + 1 : 0;
  }

  /** The next request. All of them ask for the same: the store knows the owner. */
  next(enqueue: boolean): Acquire {
    const { batcher, grants, metaText, id, runtime } = this.#client;
    const { owner, mode, weight, limit, span, ttlMs, storeTimeoutMs, meta } = this.#claim;
    // A later answer is of no use: the lease would be over, or the caller has given up.
    const windowMs = Math.min(ttlMs, storeTimeoutMs);
    const notAfterUs = batcher.time(this.#key).notAfterUs(runtime.clock.nowMs() + windowMs);
    const offerUs = toUs(this.#client.offerMs(ttlMs));
    const { seenToken } = grants;
    this.#underWay += 1;
    this.#notAfterUs = Math.max(this.#notAfterUs, notAfterUs);
    this.#seenToken ??= seenToken;
    return {
      type: "acquire",
      key: this.#key,
      owner,
      client: id,
      mode,
      weight,
      limit,
      span,
      ttlUs: toUs(ttlMs),
      meta: metaText.of(meta),
      enqueue,
      offerUs,
      heartbeatUs: Math.min(offerUs, MAX_HEARTBEAT_US),
      notAfterUs,
      seenToken,
    };
  }

  onAnswer({ resent }: Answer<Acquire>): void {
    this.#underWay -= 1;
    // rule: resent-request-may-have-copies
    if (resent) this.#wasUnanswered = true;
    if (this.#grant) this.#grant.tombstoneUs = this.tombstoneUs;
  }

  /** The owner holds. A push may overtake an answer that is still under way. */
  onGrant(grant: LedgerGrant): void {
    this.#grant = grant;
    grant.tombstoneUs = this.tombstoneUs;
  }

  onFailure(): void {
    this.#underWay -= 1;
    this.#wasUnanswered = true;
  }
}

function toUs(durationMs: number): number {
  return Math.ceil(durationMs * 1000);
}
