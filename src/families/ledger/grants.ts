import type { Loss } from "../../contract/store.js";
import type { SingleMap } from "../../rules/single-map.js";
import type { Acquisition } from "./acquisition.js";
import { LedgerGrant } from "./ledger-grant.js";

/** The owners of one client. Each has a pending acquisition and, after that, a grant. */
export type Owners = SingleMap<string, Acquisition | LedgerGrant>;

/** How many detached owners to remember. Late pushes concern only recent grants. */
const MAX_DETACHED = 10_000;

/** The grants of this client, at most one per owner. */
export class Grants {
  readonly #owners: Owners;
  /** The owners whose grants another client may have taken over, oldest first. */
  readonly #detached = new Set<string>();
  #seenToken = 0;

  constructor(owners: Owners) {
    this.#owners = owners;
  }

  /** The highest token that this client was ever granted, including spans. */
  get seenToken(): number {
    return this.#seenToken;
  }

  /** Replaces the acquisition of the grant's owner by the grant. */
  adopt(grant: LedgerGrant): void {
    this.#owners.set(grant.claim.owner, grant);
    this.#seenToken = Math.max(this.#seenToken, grant.lastToken);
  }

  /** Forgets a grant that another client may take over. */
  forget(grant: LedgerGrant): void {
    const { owner } = grant.claim;
    // If this client has resumed the grant itself, the owner has a newer grant object.
    if (this.#owners.get(owner) === grant) this.#owners.delete(owner);
    this.#detached.add(owner);
    const [oldest] = this.#detached;
    if (this.#detached.size > MAX_DETACHED && oldest !== undefined) this.#detached.delete(oldest);
  }

  /** Whether a release of this owner could end a lease that another client has taken over. */
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

  /** Ends a grant that is gone from the store. Keeps the owner while its release is unanswered. */
  lose(grant: LedgerGrant, reason: Loss["reason"], detail: string): void {
    if (this.isLive(grant)) this.#owners.delete(grant.claim.owner);
    grant.end({ reason, detail });
  }

  /** Removes an owner whose release was answered or given up. */
  onLeft(owner: string): void {
    if (this.of(owner)?.isReleasing) this.#owners.delete(owner);
  }
}
