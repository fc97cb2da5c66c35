import { MAX_TURNS, YEAR_US } from "./bounds.js";

/** No grant begins above it: all its tokens are exact as numbers. */
export const LAST_TOKEN: number = Number.MAX_SAFE_INTEGER - MAX_TURNS;

/**
 * The next fencing token. It follows the clock in microseconds, so that it keeps rising when the
 * store forgot the last one, and the last one, so that it keeps rising when the clock stepped back.
 */
export function nextToken(lastToken: number, wallUs: number): number {
  // rule: tokens-only-rise
  return Math.max(wallUs, lastToken + 1);
}

/** Whether a client may have been granted this token by a store whose clock is right. */
export function isCredible(seenToken: number, wallUs: number): boolean {
  return Number.isInteger(seenToken) && seenToken <= Math.min(wallUs + YEAR_US, LAST_TOKEN);
}
