import type { Claim, Store } from "../contract/store.js";
import type { AcquireEvent, CallContext, LockKind } from "../events/events.js";
import type { Options } from "../options/options.js";
import type { Request } from "../rules/fits.js";
import type { Space } from "../rules/name.js";

/** The lock that a call is about, and how the call wants to hold it. */
export interface Target extends Request {
  readonly kind: LockKind;
  readonly space: Space;
  readonly name: string;
}

/** A lease whose `run` a call is made in. */
export interface Enclosing {
  readonly name: string;
  readonly token: string;
}

/** The options of one call, and the runs that the call is made in. */
export interface RequestOptions extends Options {
  /** The leases of the runs around it, innermost first. */
  readonly inside?: readonly Enclosing[];
  /** Its async context, where an event will need it. */
  readonly context?: CallContext | undefined;
  /** The event of the call, where a channel has a subscriber. */
  readonly event?: AcquireEvent;
}

/** The default of `storeTimeoutMs` for a call that waits, and for one that does not. */
export const STORE_TIMEOUT_MS = 10_000;
export const TRY_TIMEOUT_MS = 1_000;

/** The claim of one call, for `span` turns. */
export function claimFor(
  store: Store,
  target: Target,
  options: RequestOptions,
  span: number,
  storeTimeoutMs: number,
): Claim {
  const { space, name, mode, weight, limit } = target;
  const { ttlMs, transferable, renew, maxHoldMs, graceMs, inside } = options;
  const traceparent = options.event?.traceparent;
  let { meta } = options;
  if (inside) meta = { ...meta, inside };
  if (traceparent !== undefined) meta = { ...meta, traceparent };
  const ownSession = transferable || !renew || maxHoldMs !== Number.POSITIVE_INFINITY;
  const owner = store.runtime.random.id();
  return {
    space,
    name,
    owner,
    mode,
    weight,
    limit,
    ttlMs,
    meta,
    span,
    transferable,
    ownSession,
    storeTimeoutMs,
    // A shorter grant would abort its signal at once.
    minUsefulMs: graceMs,
  };
}
