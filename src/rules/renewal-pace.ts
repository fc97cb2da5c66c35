/**
 * When renewals are sent. The lease renewer goes by it, and so does every store that renews a
 * session for several leases.
 *
 * The answer to a renewal may be lost. So a renewal that has no answer after a quarter of the time
 * left is sent once more, beside the first one: at least three more fit before the deadline. An
 * answer to any of them counts, however late it comes, because a slow store must not be asked in
 * vain again and again.
 */
const RENEW_PART = 3;
const REPEAT_PART = 4;
const RETRY_PART = 20;
const MAX_RETRY_MS = 500;

/** How long after the last one that was answered a renewal is due. */
export function renewAfterMs(ttlMs: number): number {
  return ttlMs / RENEW_PART;
}

/** How long a renewal may go unanswered, with so much time left, before another is sent. */
export function repeatAfterMs(remainingMs: number, ttlMs: number): number {
  return Math.max(remainingMs / REPEAT_PART, retryAfterMs(ttlMs));
}

/** How long after a renewal that failed another is sent. */
export function retryAfterMs(ttlMs: number): number {
  return Math.min(ttlMs / RETRY_PART, MAX_RETRY_MS);
}
