import assert, { AssertionError } from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { AcquireTimeoutError, StoreError } from "../errors/index.js";

/**
 * A message arrives within this time, even on a busy machine. Every poll and every expiry takes
 * longer.
 */
export const PROMPT_MS = 4_000;

/**
 * A wait for a lock that stays held. On a busy machine the store answers within it, and its answer
 * is recent enough at the end, so that the store need not answer once more within 250 ms.
 */
export const BRIEF_WAIT_MS = 900;

/** A machine that stood still for this part of a brief wait may have kept the answer back. */
const STILL_MS: number = BRIEF_WAIT_MS / 3;

/** The limit of a single wait. */
export const PATIENCE_MS = 20_000;

/** The limit of a case: whatever the store does, the case ends, and its processes end. */
export const CASE_MS = 60_000;

/** Milliseconds of a monotonic clock that all processes of a machine share. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** A limit is longer by this many times the longest delay of a timer since it began. */
const LATENESS_FACTOR = 10;

/**
 * A time limit for this machine. Timers show how busy the machine is: servers and processes that
 * take part wait for its processors just as long.
 */
class Limit {
  readonly #boundMs: number;
  readonly #startMs = performance.now();
  #lateMs = 0;
  #dueMs = Number.POSITIVE_INFINITY;

  constructor(boundMs: number) {
    this.#boundMs = boundMs;
  }

  /** The longest delay of a timer since the limit began, also of one that is overdue now. */
  get lateMs(): number {
    this.#lateMs = Math.max(this.#lateMs, performance.now() - this.#dueMs);
    return this.#lateMs;
  }

  get isOver(): boolean {
    const elapsedMs = performance.now() - this.#startMs;
    return elapsedMs >= this.#boundMs + LATENESS_FACTOR * this.lateMs;
  }

  /** Lets time pass, and measures how late the timer is. */
  async pause(forMs: number, signal?: AbortSignal): Promise<void> {
    this.#dueMs = performance.now() + forMs;
    await sleep(forMs, undefined, signal && { signal });
    this.#lateMs = this.lateMs;
    this.#dueMs = Number.POSITIVE_INFINITY;
  }

  error(what: string): AssertionError {
    return new AssertionError({ message: `${what}: not within ${Math.round(this.#boundMs)} ms` });
  }
}

/** The result of `promise`, or an AssertionError after `boundMs`, or later on a busy machine. */
export function within<T>(boundMs: number, what: string, promise: Promise<T>): Promise<T> {
  return limited(new Limit(boundMs), what, promise);
}

/**
 * The result of a wait of BRIEF_WAIT_MS. Null if the store counted as silent because the machine
 * stood still meanwhile.
 */
export async function briefly<T>(waiting: Promise<T>): Promise<T | null> {
  const limit = new Limit(BRIEF_WAIT_MS + PROMPT_MS);
  try {
    return await limited(limit, "the wait ends", waiting);
  } catch (error) {
    if (error instanceof StoreError && limit.lateMs >= STILL_MS) return null;
    throw error;
  }
}

/** The same for an acquire of a lock that stays held: its error. */
export function timesOut(waiting: Promise<unknown>): Promise<AcquireTimeoutError | null> {
  const ended = waiting.then(
    () => assert.fail("the held lock is granted"),
    (error: unknown) => {
      if (error instanceof AcquireTimeoutError) return error;
      throw error;
    },
  );
  return briefly(ended);
}

async function limited<T>(limit: Limit, what: string, promise: Promise<T>): Promise<T> {
  const settled = new AbortController();
  const expire = async (): Promise<never> => {
    while (!limit.isOver) await limit.pause(10, settled.signal);
    throw limit.error(what);
  };
  // When the limit passes first, a later rejection of the promise is not unhandled.
  promise.catch(() => undefined);
  const expired = expire();
  expired.catch(() => undefined);
  try {
    return await Promise.race([promise, expired]);
  } finally {
    settled.abort();
  }
}

/** Calls `ask` until it returns something other than null, false and undefined. */
export async function until<T>(
  what: string,
  ask: () => T | Promise<T>,
  boundMs: number = PATIENCE_MS,
): Promise<Exclude<T, null | undefined | false>> {
  const limit = new Limit(boundMs);
  for (;;) {
    const answer = await ask();
    if (answer !== null && answer !== undefined && answer !== false) {
      return answer as Exclude<T, null | undefined | false>;
    }
    if (limit.isOver) throw limit.error(what);
    await limit.pause(5);
  }
}

/** Whether the promise settles within `graceMs`. */
export async function isSettled(promise: Promise<unknown>, graceMs = 0): Promise<boolean> {
  const settled = promise.then(
    () => true,
    () => true,
  );
  return Promise.race([settled, sleep(graceMs, false)]);
}
