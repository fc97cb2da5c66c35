import type { Loss } from "../../contract/store.js";
import type { SingleMap } from "../../rules/single-map.js";
import type { Acquisition } from "./acquisition.js";
import { LedgerGrant } from "./ledger-grant.js";

/** The owners of one client: an owner has an acquisition that is under way, and then its grant. */
export type Owners = SingleMap<string, Acquisition | LedgerGrant>;

/** A late push is about one of the latest grants. */
const MAX_DETACHED = 10_000;

/** The grants of this client: an owner has one grant at most. */
export class Grants {
  readonly #owners: Owners;
  /** The owners whose grants another client may keep, the oldest first. */
  readonly #detached = new Set<string>();
  #seenToken = 0;

  constructor(owners: Owners) {
    this.#owners = owners;
  }

  /** The highest token this client was ever granted, with the rest of its span. */
  get seenToken(): number {
    return this.#seenToken;
  }

  /** From now on its owner has this grant, and no acquisition. */
  adopt(grant: LedgerGrant): void {
    this.#owners.set(grant.claim.owner, grant);
    this.#seenToken = Math.max(this.#seenToken, grant.lastToken);
  }

  /** Another client may keep the grant from now on. */
  forget(grant: LedgerGrant): void {
    const { owner } = grant.claim;
    // This client may have resumed the grant: then its owner has another one.
    if (this.#owners.get(owner) === grant) this.#owners.delete(owner);
    this.#detached.add(owner);
    const [oldest] = this.#detached;
    if (this.#detached.size > MAX_DETACHED && oldest !== undefined) this.#detached.delete(oldest);
  }

  /** A release by this client would end the lease of another one. */
  wasDetached(owner: string): boolean {
    return this.#detached.has(owner);
  }

  of(owner: string): LedgerGrant | undefined {
    const there = this.#owners.get(owner);
    const grant = there instanceof LedgerGrant ? there : undefined;
    // rule: released-grant-is-known-until-answered
    return grant;
  }

  *values(): Iterable<LedgerGrant> {
    for (const there of this.#owners.values()) if (there instanceof LedgerGrant) yield there;
  }

  isLive(grant: LedgerGrant): boolean {
    return !grant.isReleasing && this.#owners.get(grant.claim.owner) === grant;
  }

  /** The store has ended the grant. Its owner is still known while its release is under way. */
  lose(grant: LedgerGrant, reason: Loss["reason"], detail: string): void {
    if (this.isLive(grant)) this.#owners.delete(grant.claim.owner);
    grant.end({ reason, detail });
  }

  /** The release of this owner was answered, or is not repeated any more. */
  onLeft(owner: string): void {
    if (this.of(owner)?.isReleasing) this.#owners.delete(owner);
  }
}
