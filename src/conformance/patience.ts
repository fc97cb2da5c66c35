import { AssertionError } from "node:assert";
import { setTimeout as sleep } from "node:timers/promises";

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

/** The limit of a single wait. */
export const PATIENCE_MS = 20_000;

/** The limit of a case: whatever the store does, the case ends, and its processes end. */
export const CASE_MS = 60_000;

/** Milliseconds of a monotonic clock that all processes of a machine share. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** The result of `promise`, or an AssertionError after `boundMs`. */
export async function within<T>(boundMs: number, what: string, promise: Promise<T>): Promise<T> {
  const late = new AbortController();
  // When the limit passes first, a later rejection of the promise is not unhandled.
  promise.catch(() => undefined);
  try {
    return await Promise.race([
      promise,
      sleep(boundMs, undefined, { signal: late.signal }).then(() => {
        throw new AssertionError({ message: `${what}: not within ${Math.round(boundMs)} ms` });
      }),
    ]);
  } finally {
    late.abort();
  }
}

/** Calls `ask` until it returns something other than null, false and undefined. */
export async function until<T>(
  what: string,
  ask: () => T | Promise<T>,
  boundMs: number = PATIENCE_MS,
): Promise<Exclude<T, null | undefined | false>> {
  const endMs = performance.now() + boundMs;
  for (;;) {
    const answer = await ask();
    if (answer !== null && answer !== undefined && answer !== false) {
      return answer as Exclude<T, null | undefined | false>;
    }
    if (performance.now() >= endMs) {
      throw new AssertionError({ message: `${what}: not within ${Math.round(boundMs)} ms` });
    }
    await sleep(5);
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
