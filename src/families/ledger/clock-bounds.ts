/**
 * Bounds on the offset between the local clock and a store's clock, learned from the store's
 * answers. Each answer is a sample: sent at a, stamped s by the store, received at r, so the true
 * offset (local minus store) is between a − s and r − s. Clocks are assumed to drift by at most
 * 0.1 %, so a bound loosens with its age. If an answer contradicts the bounds, a clock has stepped;
 * the bounds are then reset, as they are when another server answers.
 */

import type { PushedGrant } from "../../rules/ledger-command.js";
import { marginMs } from "../../rules/margin.js";

const DRIFT = 0.001;

export class ClockBounds {
  #node: string | null = null;
  /** The best lower and upper bound on the offset, and when each was taken. */
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

  /** A lower bound on the store's time at `localMs`. */
  storeUs(localMs: number): number {
    return Math.floor((localMs - this.#highest(localMs)) * 1000);
  }

  /**
   * The `notAfterUs` of commands that are valid until `localMs`. Rounded to whole milliseconds, so
   * that commands made in quick succession share one value and a batch carries it only once.
   */
  notAfterUs(localMs: number): number {
    return Math.floor(this.storeUs(localMs) / 1000) * 1000;
  }

  /**
   * The deadline until which a pushed grant may be relied on at once. Null if the push may be too
   * old or the bounds are too loose to tell; the answer to the confirm then decides.
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
