import { setTimeout as delay } from "node:timers/promises";

export interface WaitOptions {
  /** The awaited condition, for the error message. */
  readonly what: string;
  /** Default 60 000, for a busy machine. */
  readonly timeoutMs?: number;
  /** The pause between two calls. Default 10. */
  readonly everyMs?: number;
}

/**
 * Calls `ask` until it returns true. An error counts as false (a starting server refuses
 * connections); the last error is the cause of the timeout error.
 */
export async function waitUntil(
  ask: () => boolean | Promise<boolean>,
  { what, timeoutMs = 60_000, everyMs = 10 }: WaitOptions,
): Promise<void> {
  const deadlineMs = performance.now() + timeoutMs;
  let cause: unknown;
  do {
    try {
      if (await ask()) return;
      cause = undefined;
    } catch (error) {
      cause = error;
    }
    await delay(everyMs);
  } while (performance.now() < deadlineMs);
  throw new Error(`not within ${timeoutMs} ms: ${what}`, { cause });
}
