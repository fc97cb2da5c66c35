/**
 * The bounds on a store's clock that this client concludes from its answers. Each answer is a
 * sample: sent at a, stamped s by the store, received at r, so the true offset (local minus store)
 * lies between a − s and r − s. Offsets drift, by assumption at most 0.1 %, so a bound loosens with
 * its age. An answer that contradicts the bounds means that the clock stepped, or that another
 * server answers: all that was known is forgotten.
 */

import type { PushedGrant } from "../../rules/ledger-command.js";
import { marginMs } from "../../rules/margin.js";

const DRIFT = 0.001;

export class ClockBounds {
  #node: string | null = null;
  /** The two best samples: the offset each bounds, and when it was taken. */
  #lowMs = Number.NEGATIVE_INFINITY;
  #lowAtMs = 0;
  #highMs = Number.POSITIVE_INFINITY;
  #highAtMs = 0;

  /** Whether any answer has been seen. */
  get isKnown(): boolean {
    return this.#node !== null;
  }

  learn(node: string, sentMs: number, storeUs: number, receivedMs: number): void {
    const lowMs = sentMs - storeUs / 1000;
    const highMs = receivedMs - storeUs / 1000;
    const hasStepped = highMs < this.#lowest(receivedMs) || lowMs > this.#highest(sentMs);
    const isNew = hasStepped || node !== this.#node;
    this.#node = node;
    if (isNew || lowMs > this.#lowest(sentMs)) {
      this.#lowMs = lowMs;
      this.#lowAtMs = sentMs;
    }
    if (isNew || highMs < this.#highest(receivedMs)) {
      this.#highMs = highMs;
      this.#highAtMs = receivedMs;
    }
  }

  /**
   * The store's time that has certainly not yet passed `localMs`: what is stale then is stale
   * there.
   */
  storeUs(localMs: number): number {
    return Math.floor((localMs - this.#highest(localMs)) * 1000);
  }

  /**
   * The same in whole milliseconds, for commands that are valid until `localMs`: commands made one
   * after the other then say the same time, and a batch says it once.
   */
  notAfterUs(localMs: number): number {
    return Math.floor(this.storeUs(localMs) / 1000) * 1000;
  }

  /**
   * The deadline up to which a pushed grant may be believed at once; null when its push was too
   * slow, or the clock too uncertain, to tell: then the answer to the confirm decides.
   */
  believe(grant: PushedGrant, receivedMs: number): number | null {
    const low = this.#lowest(receivedMs);
    const lagMs = receivedMs - grant.grantedUs / 1000 - low;
    const margin = marginMs((grant.expiryUs - grant.grantedUs) / 1000);
    // rule: handoff-is-believed-if-fresh
    if (!(lagMs >= 0 && lagMs <= margin)) return null;
    return low + grant.expiryUs / 1000 - 2 * margin;
  }

  #lowest(localMs: number): number {
    return this.#lowMs - DRIFT * (localMs - this.#lowAtMs);
  }

  #highest(localMs: number): number {
    return this.#highMs + DRIFT * (localMs - this.#highAtMs);
  }
}
