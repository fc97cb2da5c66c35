/**
 * What this client may conclude about a store's clock from its answers. Each answer is a sample: sent
 * at a, stamped s by the store, received at r, so the true offset (local minus store) lies between
 * a − s and r − s. Offsets drift, by assumption at most 0.1 %, so a bound loosens with its age. An
 * answer that contradicts the bounds means that the clock stepped, or that another server answers:
 * all that was known is forgotten.
 */
import { marginMs } from "../../rules/margin.js";
import type { PushedGrant } from "../../rules/ledger-command.js";

const DRIFT = 0.001;

interface Sample {
  readonly atMs: number;
  readonly offsetMs: number;
}

export class StoreTime {
  #node: string | null = null;
  #low: Sample = { atMs: 0, offsetMs: Number.NEGATIVE_INFINITY };
  #high: Sample = { atMs: 0, offsetMs: Number.POSITIVE_INFINITY };

  /** Whether any answer has been seen. */
  get isKnown(): boolean {
    return this.#node !== null;
  }

  learn(node: string, sentMs: number, storeUs: number, receivedMs: number): void {
    const low = { atMs: sentMs, offsetMs: sentMs - storeUs / 1000 };
    const high = { atMs: receivedMs, offsetMs: receivedMs - storeUs / 1000 };
    const stepped =
      high.offsetMs < this.#lowAt(receivedMs) || low.offsetMs > this.#highAt(sentMs);
    if (stepped || node !== this.#node) {
      this.#node = node;
      this.#low = low;
      this.#high = high;
      return;
    }
    if (low.offsetMs > this.#lowAt(sentMs)) this.#low = low;
    if (high.offsetMs < this.#highAt(receivedMs)) this.#high = high;
  }

  /** The store's time that has certainly not yet passed `localMs`: what is stale then is stale there. */
  storeUs(localMs: number): number {
    return Math.floor((localMs - this.#highAt(localMs)) * 1000);
  }

  /**
   * The deadline up to which a pushed grant may be believed at once; null when its push was too slow,
   * or the clock too uncertain, to tell: then the answer to the confirm decides.
   */
  believe(grant: PushedGrant, receivedMs: number): number | null {
    const low = this.#lowAt(receivedMs);
    const lagMs = receivedMs - grant.grantedUs / 1000 - low;
    const margin = marginMs((grant.expiryUs - grant.grantedUs) / 1000);
    if (!(lagMs >= 0 && lagMs <= margin)) return null;
    return low + grant.expiryUs / 1000 - 2 * margin;
  }

  #lowAt(localMs: number): number {
    return this.#low.offsetMs - DRIFT * (localMs - this.#low.atMs);
  }

  #highAt(localMs: number): number {
    return this.#high.offsetMs + DRIFT * (localMs - this.#high.atMs);
  }
}
