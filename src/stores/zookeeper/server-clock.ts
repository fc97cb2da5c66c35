import type { Clock } from "../../time/clock.js";

/**
 * The wall clock of ZooKeeper's leader, as far as this process knows it: the time in a znode that
 * this process made, and the time since then. Marks end by it. Without such a znode, the wall clock
 * of this machine has to do.
 */
export class ServerClock {
  readonly #clock: Clock;
  #aheadMs: number | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * ZooKeeper made a znode at `createdMs`. Its time now is that or later: a mark may count longer
   * than it should, never shorter.
   */
  learn(createdMs: number): void {
    this.#aheadMs = createdMs - this.#clock.nowMs();
  }

  /** Whether the time is that of the leader. */
  get isKnown(): boolean {
    return this.#aheadMs !== null;
  }

  /** Not later than the time of the leader, if that leader answered last. */
  nowMs(): number {
    return this.#aheadMs === null
      ? this.#clock.wallUs() / 1000
      : this.#clock.nowMs() + this.#aheadMs;
  }
}
