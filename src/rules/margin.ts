/**
 * How much earlier than the store a client ends a lease of this length: 1 % for two clocks that run
 * apart, 2 ms for timers that fire early and times that are rounded.
 */
export function marginMs(lengthMs: number): number {
  // rule: margin-for-drift
  return lengthMs / 100 + 2;
}

/**
 * Until when to believe in a grant of this length of which a request, sent at `sentMs`, found so
 * much left. More than the length is the doing of a clock that was set back, and may be undone.
 */
export function deadlineOf(sentMs: number, remainingMs: number, lengthMs: number): number {
  // rule: deadline-before-expiry
  return sentMs + Math.min(remainingMs, lengthMs) - marginMs(lengthMs);
}
