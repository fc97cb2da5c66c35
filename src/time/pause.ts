import type { Timers } from "./timers.js";

/** Resolves after `delayMs`. The process stays alive for it only when `keepAlive` is set. */
export function pause(timers: Timers, delayMs: number, keepAlive = false): Promise<void> {
  return new Promise((resume) => void timers.after(delayMs, resume, keepAlive));
}
