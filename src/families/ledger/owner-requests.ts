import type { Claim } from "../../contract/store.js";
import { MAX_HEARTBEAT_US } from "../../rules/bounds.js";
import type { Acquire } from "../../rules/ledger-command.js";
import type { ArbiterClient } from "./arbiter-client.js";
import type { Answer } from "./command-batcher.js";
import type { LedgerGrant } from "./ledger-grant.js";

/**
 * The acquire requests of one owner, and whether copies of them may still reach the store. The
 * store ignores a copy after its `notAfterUs`. If a copy may still arrive, a release of the owner
 * leaves a tombstone that lasts longer than that, so that an owner that gave up never holds again.
 */
export class OwnerRequests {
  readonly #key: string;
  readonly #claim: Claim;
  readonly #client: ArbiterClient;
  /** The latest `notAfterUs`, in store time, of all requests of this owner. */
  #notAfterUs = 0;
  /** How many requests are unanswered. */
  #underWay = 0;
  /** A request failed or its connection changed, so a copy of it may still arrive. */
  #wasUnanswered = false;
  #seenToken: number | undefined;
  #grant: LedgerGrant | null = null;
  /** Whether the store is known to have this owner, as a waiter or a holder. */
  isEntered = false;

  constructor(key: string, claim: Claim, client: ArbiterClient) {
    this.#key = key;
    this.#claim = claim;
    this.#client = client;
  }

  /** The highest token this client knew at its first request. The grant must have a higher one. */
  get seenToken(): number {
    return this.#seenToken ?? 0;
  }

  /** Whether a copy of a request may still arrive at the store. */
  get mayStillArrive(): boolean {
    return this.#wasUnanswered || this.#underWay > 0;
  }

  /** Until when, in store time, the tombstone of a release must last; 0 if none is needed. */
  get tombstoneUs(): number {
    // The store still accepts a copy at exactly `notAfterUs`.
    // rule: tombstone-outlives-copies
    return this.mayStillArrive ? this.#notAfterUs + 1 : 0;
  }

  /** Makes the next request. The store recognizes the owner, so repeating a request is safe. */
  next(enqueue: boolean): Acquire {
    const { batcher, grants, metaText, id, runtime } = this.#client;
    const { owner, mode, weight, limit, span, ttlMs, storeTimeoutMs, meta } = this.#claim;
    // A later answer is useless: the lease would have expired, or the caller has given up.
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

  /** Keeps `tombstoneUs` of the grant up to date: a push may have overtaken unanswered requests. */
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
