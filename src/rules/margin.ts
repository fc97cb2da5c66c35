/**
 * How much earlier than the store a client ends a lease of this length: 1 % for two clocks that run
 * apart, 2 ms for timers that fire early and times that are rounded.
 */
export function marginMs(lengthMs: number): number {
  return lengthMs / 100 + 2;
}
