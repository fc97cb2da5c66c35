import type { Release } from "../../rules/ledger-command.js";
import { Withdrawal, type WithdrawalDuties } from "./withdrawal.js";

const LEAST_MS = 5_000;
const LONGEST_MS = 30_000;

/** The withdrawals that nobody waits for: an owner that gave up must not hold, now or later. */
export class Cleanups {
  readonly #duties: WithdrawalDuties;
  readonly #underWay = new Set<Promise<unknown>>();
  /** The tombstones of those that were not answered yet, by owner. */
  readonly #tombstones = new Map<string, number>();

  constructor(duties: WithdrawalDuties) {
    this.#duties = duties;
  }

  /**
   * Repeats the release of an owner until it is answered, or until its grant would be over anyway.
   */
  start(key: string, owner: string, tombstoneUs: number, ttlMs: number): void {
    const limitMs = Math.min(Math.max(ttlMs, LEAST_MS), LONGEST_MS);
    const command: Release = { type: "release", key, owner, tombstoneUs, keep: null };
    const cleanup = new Promise<unknown>((resolve) => {
      new Withdrawal(command, limitMs, this.#duties, resolve, resolve).start(null);
    });
    this.#underWay.add(cleanup);
    if (tombstoneUs > 0) this.#tombstones.set(owner, tombstoneUs);
    void cleanup.finally(() => {
      this.#underWay.delete(cleanup);
      this.#tombstones.delete(owner);
    });
  }

  /** The same once more; a second release must not leave a shorter tombstone than the first. */
  repeat(key: string, owner: string): void {
    this.start(key, owner, this.#tombstones.get(owner) ?? 0, 0);
  }

  async settled(): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }
}
