import type { Claim, Grant, GrantListener, Loss, RenewalTerms } from "../contract/store.js";
import { tellEnd } from "../contract/store-grant.js";
import { assert } from "../errors/assert.js";
import type { GrantCopy } from "./messages.js";
import { SharedGrant } from "./shared-grant.js";

/** A grant in the thread of the caller: its deadline is in shared memory. */
export class ThreadGrant implements Grant {
  readonly type = "granted";
  readonly claim: Claim;
  readonly token: bigint;
  readonly span: number;
  readonly locator: string | null;
  readonly isHandoff: boolean;
  /** The number of the grant in the thread of the store. */
  readonly number: number;
  listener: GrantListener | null = null;
  loss: Loss | null = null;
  readonly #shared: SharedGrant;
  #isTaken = false;

  constructor(asked: Claim, copy: GrantCopy) {
    const { grant, owner, token, span, locator, isHandoff, memory } = copy;
    this.number = grant;
    this.claim = owner === asked.owner ? asked : { ...asked, owner };
    this.token = token;
    this.span = span;
    this.locator = locator;
    this.isHandoff = isHandoff;
    this.#shared = new SharedGrant(memory);
  }

  get deadlineMs(): number {
    return this.#shared.deadlineMs;
  }

  /** The grant has ended, whatever the clock says. */
  get isOver(): boolean {
    return this.#shared.isOver;
  }

  /** Moves the deadline into the past, and tells nobody yet. */
  expire(): void {
    this.#shared.end();
  }

  end(loss: Loss): void {
    if (this.loss) return;
    this.loss = loss;
    tellEnd(this.listener, loss);
    this.expire();
  }

  /**
   * Takes the grant, without a message: the thread looks for it after a part of the ttl, and most
   * leases are released by then. False where the thread has to know more, or other terms than
   * before.
   */
  take({ ttlMs, renew, graceMs, endMs }: RenewalTerms): boolean {
    if (this.#isTaken || endMs !== Number.POSITIVE_INFINITY) return false;
    this.#isTaken = true;
    if (renew) this.#shared.take({ ttlMs, graceMs });
    return true;
  }
}

/** The grant as a store in a thread made it: a store is given its own grants only. */
export function threadGrant(grant: Grant): ThreadGrant {
  assert(grant instanceof ThreadGrant, "a store is given its own grants only");
  return grant;
}
