/** A run lasts for this part of the ttl at most: so its last lease has nearly its full length. */
const LONGEST_PART = 10;

/**
 * A run: waiters of this client that stood one behind the other in the store's queue, and hold by
 * one grant of the store, each with a token of its own. The store granted the run as a whole, so a
 * turn waits for no message. A follower leaves the store's queue when its turn begins. So a run may
 * end at any time: the next follower is the head of the queue then.
 */
export class Run {
  readonly firstToken: bigint;
  readonly #followers: readonly string[];
  readonly #untilMs: number;
  /** The turn under way; the first is that of the owner to which the store handed the lock. */
  #turn = 0;

  constructor(firstToken: bigint, followers: readonly string[], nowMs: number, ttlMs: number) {
    this.firstToken = firstToken;
    this.#followers = followers;
    this.#untilMs = nowMs + ttlMs / LONGEST_PART;
  }

  /** The token of the turn under way. */
  get token(): bigint {
    return this.firstToken + BigInt(this.#turn);
  }

  /** The owner of the next turn; it may have given up. */
  next(nowMs: number): string | undefined {
    // rule: runs-are-short
    if (nowMs >= this.#untilMs) return undefined;
    this.#turn += 1;
    return this.#followers[this.#turn - 1];
  }
}
