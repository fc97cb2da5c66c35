import { LoneMap } from "../../rules/lone-map.js";
import type { GoneEvent } from "../../store.js";
import type { ArbiterGrant } from "./arbiter-grant.js";

/** The grants of this client, by owner: an owner has one grant at most. */
export class Grants {
  readonly #byOwner = new LoneMap<string, ArbiterGrant>();
  #seenToken = 0;
  /** Hears of a grant that ended without its holder's doing. */
  onGone: (event: GoneEvent) => void = () => {};

  /** The highest token this client was ever granted, with the rest of its span. */
  get seenToken(): number {
    return this.#seenToken;
  }

  adopt(grant: ArbiterGrant): void {
    this.#byOwner.set(grant.claim.owner, grant);
    this.#seenToken = Math.max(this.#seenToken, Number(grant.token) + grant.span - 1);
  }

  /** Another client may keep the grant from now on. */
  forget({ claim }: ArbiterGrant): void {
    this.#byOwner.delete(claim.owner);
  }

  of(owner: string): ArbiterGrant | undefined {
    // rule: released-grant-is-known-until-answered
    return this.#byOwner.get(owner);
  }

  values(): Iterable<ArbiterGrant> {
    return this.#byOwner.values();
  }

  isLive(grant: ArbiterGrant): boolean {
    return !grant.isGivenBack && this.#byOwner.get(grant.claim.owner) === grant;
  }

  lose(grant: ArbiterGrant, reason: GoneEvent["reason"], detail: string): void {
    if (!this.isLive(grant)) return;
    this.#byOwner.delete(grant.claim.owner);
    this.onGone({ type: "gone", grant, reason, detail });
    // The caller may not have the grant yet: when it gets the grant, the deadline has passed.
    grant.end();
  }

  /** The release of this owner was answered, or is not repeated any more. */
  onLeft(owner: string): void {
    if (this.#byOwner.get(owner)?.isGivenBack) this.#byOwner.delete(owner);
  }
}
