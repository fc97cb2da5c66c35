/**
 * How much a client may ask for. The ledger refuses or cuts off what is beyond, whatever a client
 * sends: times and tokens are numbers, and must keep all their digits when they are added up.
 */
import type { Acquire } from "./ledger-command.js";

/** A year: no token that a client has seen is so far ahead of a clock that is right. */
export const YEAR_US: number = 365 * 86_400_000_000;

/** A hundred years. */
export const MAX_DURATION_US: number = 100 * YEAR_US;

/** A client is dropped after three silent periods: these end within the longest time. */
export const MAX_HEARTBEAT_US: number = MAX_DURATION_US / 4;

/** A client that promises to speak more often would be dropped in the call in which it queued. */
export const MIN_HEARTBEAT_US = 1_000;

/** The most tokens that one grant reserves. */
export const MAX_TURNS = 1_024;

/** Whether the terms of a grant are within bounds. A request that fits nowhere is not. */
export function areTermsValid({ ttlUs, weight, limit, span }: Acquire): boolean {
  return (
    isDuration(ttlUs, MAX_DURATION_US) &&
    isCount(weight, limit) &&
    isCount(limit, Number.MAX_SAFE_INTEGER) &&
    isCount(span, MAX_TURNS)
  );
}

/** The same for the terms of a waiter, which matter only in the queue. */
export function isPatienceValid({ offerUs, heartbeatUs }: Acquire): boolean {
  return (
    isDuration(offerUs, MAX_DURATION_US) &&
    isDuration(heartbeatUs, MAX_HEARTBEAT_US, MIN_HEARTBEAT_US)
  );
}

export function isDuration(us: number, longestUs: number, minUs = 0): boolean {
  return Number.isInteger(us) && us >= minUs && us <= longestUs;
}

/** A duration that cannot be refused, because a release never is: cut off at the bounds. */
export function cutOff(us: number): number {
  return us > 0 ? Math.min(Math.ceil(us), MAX_DURATION_US) : 0;
}

function isCount(value: number, most: number): boolean {
  return Number.isInteger(value) && value >= 1 && value <= most;
}
