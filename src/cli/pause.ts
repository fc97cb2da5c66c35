import { setTimeout } from "node:timers/promises";

/** Waits for `delayMs`, or until the signal aborts; leaves no listener behind. */
export async function pause(delayMs: number, signal?: AbortSignal): Promise<void> {
  await setTimeout(delayMs, undefined, signal ? { signal } : {}).catch(() => {});
}
