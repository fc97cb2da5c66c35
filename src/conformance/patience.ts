import { AssertionError } from "node:assert";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * What happens by a message takes at most this long, and any backstop longer, even on a busy
 * machine.
 */
export const PROMPT_MS = 4_000;

/** Nothing that has to happen takes longer. */
export const PATIENCE_MS = 20_000;

/** No case takes longer: whatever a store does, a case ends, and ends its processes. */
export const CASE_MS = 60_000;

/** Milliseconds by a clock that all processes of a machine share. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** The outcome of `promise`, unless it takes longer than `boundMs`. */
export async function within<T>(boundMs: number, what: string, promise: Promise<T>): Promise<T> {
  const late = new AbortController();
  // Whoever loses the race must not fail on its own.
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

/** Asks until the answer is not null, false or undefined. */
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

/** Whether the promise has an outcome by now, or within `graceMs`. */
export async function isSettled(promise: Promise<unknown>, graceMs = 0): Promise<boolean> {
  const settled = promise.then(
    () => true,
    () => true,
  );
  return Promise.race([settled, sleep(graceMs, false)]);
}
