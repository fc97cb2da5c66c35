import { WorkUnderWay } from "../../time/work-under-way.js";
import type { ArbiterClient } from "./arbiter-client.js";
import { Withdrawal } from "./withdrawal.js";

const MIN_MS = 5_000;
const MAX_MS = 30_000;

/** Withdraws owners that gave up, so that they never hold the lock. No caller waits for this. */
export class Cleanups {
  readonly #client: ArbiterClient;
  readonly #underWay = new WorkUnderWay();
  /** The tombstones of unanswered cleanups, by owner. */
  readonly #tombstones = new Map<string, number>();

  constructor(client: ArbiterClient) {
    this.#client = client;
  }

  /** Releases an owner, and retries until the store answers or its grant would have expired. */
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
   * Releases an offer whose acquisition has ended. Does nothing if the owner holds here, by this
   * grant or by a later one after the offer lapsed: the offer is then old news. The same goes for
   * an owner that was detached here and may hold in another client.
   */
  refuse(key: string, owner: string): void {
    if (this.#client.grants.wasDetached(owner)) return;
    // This release must not leave a shorter tombstone than a pending one.
    const tombstoneUs = this.#tombstones.get(owner) ?? 0;
    // rule: late-push-spares-the-holder
    if (!this.#client.grants.of(owner)) this.start(key, owner, tombstoneUs, 0);
  }

  settled(): Promise<void> {
    return this.#underWay.settled();
  }
}
