/**
 * The next fencing token. It follows the clock in microseconds, so that it keeps rising when the
 * store forgot the last one, and the last one, so that it keeps rising when the clock stepped back.
 */
export function nextToken(lastToken: number, wallUs: number): number {
  return Math.max(wallUs, lastToken + 1);
}
