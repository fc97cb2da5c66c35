import { WorkUnderWay } from "../../time/work-under-way.js";
import type { ArbiterClient } from "./arbiter-client.js";
import { Withdrawal } from "./withdrawal.js";

const MIN_MS = 5_000;
const MAX_MS = 30_000;

/**
 * The withdrawals that no caller waits for: an owner that gave up must not hold, now or later.
 */
export class Cleanups {
  readonly #client: ArbiterClient;
  readonly #underWay = new WorkUnderWay();
  /** The tombstones of cleanups without an answer yet, by owner. */
  readonly #tombstones = new Map<string, number>();

  constructor(client: ArbiterClient) {
    this.#client = client;
  }

  /**
   * Repeats the release of an owner until it is answered, or until its grant would be over anyway.
   */
  start(key: string, owner: string, tombstoneUs: number, ttlMs: number): void {
    const limitMs = Math.min(Math.max(ttlMs, MIN_MS), MAX_MS);
    const cleanup = new Promise<unknown>((resolve) => {
      const withdrawn = { key, owner, tombstoneUs };
      new Withdrawal(withdrawn, null, limitMs, this.#client).start(resolve, resolve);
    });
    if (tombstoneUs > 0) this.#tombstones.set(owner, tombstoneUs);
    void this.#underWay.add(cleanup).finally(() => this.#tombstones.delete(owner));
  }

  /**
   * Gives back a grant whose acquisition has ended. An owner that holds here does so by this very
   * grant, or by a later one after the offer had lapsed: then the news is old, and nothing is given
   * back. The same is true of an owner that was detached here, and may hold in another client.
   */
  refuse(key: string, owner: string): void {
    if (this.#client.grants.wasDetached(owner)) return;
    // A second release must not leave a shorter tombstone than the first.
    const tombstoneUs = this.#tombstones.get(owner) ?? 0;
    // rule: late-push-spares-the-holder
    if (!this.#client.grants.of(owner)) this.start(key, owner, tombstoneUs, 0);
  }

  settled(): Promise<void> {
    return this.#underWay.settled();
  }
}
