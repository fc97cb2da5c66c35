import type { Grant } from "../store.js";

/** The value of a grant that is over before its deadline. */
const OVER = 0n;
/** Far beyond every deadline; a `bigint` of 64 bits ends above it. */
const LATEST_US = Number.MAX_SAFE_INTEGER;

/**
 * The deadline of one grant in memory that two threads share. The thread of the store writes it;
 * the thread of the caller reads it, whatever its event loop does. Each grant has memory of its
 * own, which is never used again, so no lease can read the deadline of another.
 */
export class SharedDeadline {
  readonly memory: SharedArrayBuffer;
  readonly #cell: BigInt64Array;
  #hasEnded = false;

  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#cell = new BigInt64Array(memory);
  }

  /** Writes the deadline of a grant from now on, whenever its store moves it. */
  static of(grant: Grant): SharedDeadline {
    const shared = new SharedDeadline();
    let deadlineMs = grant.deadlineMs;
    shared.write(deadlineMs);
    Object.defineProperty(grant, "deadlineMs", {
      configurable: true,
      enumerable: true,
      get: () => deadlineMs,
      set: (movedMs: number) => {
        deadlineMs = movedMs;
        shared.write(movedMs);
      },
    });
    return shared;
  }

  get isOver(): boolean {
    return Atomics.load(this.#cell, 0) === OVER;
  }

  /** The time of the clock that both threads share. */
  get ms(): number {
    return Number(Atomics.load(this.#cell, 0)) / 1000;
  }

  /** Rounds down: a deadline in this memory is never late. A grant that is over stays over. */
  write(deadlineMs: number): void {
    const us = Math.min(Math.floor(deadlineMs * 1000), LATEST_US);
    if (!this.#hasEnded) Atomics.store(this.#cell, 0, us > 0 ? BigInt(us) : OVER);
  }

  end(): void {
    this.#hasEnded = true;
    Atomics.store(this.#cell, 0, OVER);
  }
}
