import { setTimeout as delay } from "node:timers/promises";

export interface WaitOptions {
  /** What is awaited, for the message of the error. */
  readonly what: string;
  /** Default 20 000. */
  readonly timeoutMs?: number;
  /** Pause between two questions. Default 10. */
  readonly everyMs?: number;
}

/**
 * Asks until the answer is yes. A question that throws counts as "not yet" (a server that starts
 * refuses connections); the last error becomes the cause when time runs out.
 */
export async function waitUntil(
  ask: () => boolean | Promise<boolean>,
  { what, timeoutMs = 20_000, everyMs = 10 }: WaitOptions,
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
  throw new Error(`waited ${timeoutMs} ms in vain: ${what}`, { cause });
}
