import type { Grant } from "../contract/store.js";

const DEADLINE = 0;
const TTL = 1;
const GRACE = 2;
const CELLS = 3;

/** The deadline of a grant that has ended, whatever the clock says. It is never overwritten. */
const OVER = 0n;
/** Far beyond every deadline; a `bigint` of 64 bits ends above it. */
const LATEST_US = Number.MAX_SAFE_INTEGER;

/**
 * One grant in memory that two threads share. The thread of the store writes the deadline; the
 * thread of the caller reads it, whatever its event loop does, and writes that it has taken the
 * grant. Either thread can end the grant, and no later deadline undoes that. Each grant has
 * separate memory, which is never used again, so no lease can read the deadline of another.
 */
export class SharedGrant {
  readonly memory: SharedArrayBuffer;
  readonly #cells: BigInt64Array;

  constructor(
    memory: SharedArrayBuffer = new SharedArrayBuffer(CELLS * BigInt64Array.BYTES_PER_ELEMENT),
  ) {
    this.memory = memory;
    this.#cells = new BigInt64Array(memory);
  }

  /** Writes the deadline of a grant from now on, whenever its store moves it. */
  static of(grant: Grant): SharedGrant {
    const shared = new SharedGrant();
    let deadlineMs = grant.deadlineMs;
    Atomics.store(shared.#cells, DEADLINE, cellOf(deadlineMs));
    Object.defineProperty(grant, "deadlineMs", {
      configurable: true,
      enumerable: true,
      get: () => deadlineMs,
      set: (movedMs: number) => {
        deadlineMs = movedMs;
        shared.#move(movedMs);
      },
    });
    return shared;
  }

  /** The grant is over, whatever the clock says. */
  get isOver(): boolean {
    return Atomics.load(this.#cells, DEADLINE) === OVER;
  }

  /** By the clock that both threads share. */
  get deadlineMs(): number {
    return Number(Atomics.load(this.#cells, DEADLINE)) / 1000;
  }

  /** The terms of the caller, once it has taken the grant to have it renewed. */
  get taken(): { readonly ttlMs: number; readonly graceMs: number } | null {
    const ttlUs = Atomics.load(this.#cells, TTL);
    if (ttlUs === 0n) return null;
    return {
      ttlMs: Number(ttlUs) / 1000,
      graceMs: Number(Atomics.load(this.#cells, GRACE)) / 1000,
    };
  }

  take({ ttlMs, graceMs }: { readonly ttlMs: number; readonly graceMs: number }): void {
    // The ttl last: a thread that reads it finds the grace.
    Atomics.store(this.#cells, GRACE, BigInt(Math.ceil(graceMs * 1000)));
    Atomics.store(this.#cells, TTL, BigInt(Math.ceil(ttlMs * 1000)));
  }

  /** Ends the grant for both threads, whatever its store still hears. */
  end(): void {
    Atomics.store(this.#cells, DEADLINE, OVER);
  }

  #move(deadlineMs: number): void {
    const moved = cellOf(deadlineMs);
    for (let seen = Atomics.load(this.#cells, DEADLINE); seen !== OVER; ) {
      const was = Atomics.compareExchange(this.#cells, DEADLINE, seen, moved);
      if (was === seen) return;
      // The other thread has ended the grant in the meantime.
      seen = was;
    }
  }
}

/** Rounds down: a deadline in shared memory is never late. */
function cellOf(deadlineMs: number): bigint {
  const us = Math.min(Math.floor(deadlineMs * 1000), LATEST_US);
  return us > 0 ? BigInt(us) : OVER;
}
