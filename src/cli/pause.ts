import { setTimeout } from "node:timers/promises";

/** A timer that is set for longer fires at once. */
const MAX_MS = 2 ** 31 - 1;

/** Waits for `delayMs`, 24 days at most, or until the signal aborts; leaves no listener behind. */
export async function pause(delayMs: number, signal?: AbortSignal): Promise<void> {
  const options = signal ? { signal } : {};
  await setTimeout(Math.min(delayMs, MAX_MS), undefined, options).catch(() => {});
}
