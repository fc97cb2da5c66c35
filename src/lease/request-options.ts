import type { Claim, Store } from "../contract/store.js";
import type { AcquireEvent, CallContext, LockKind } from "../events/events.js";
import type { Options } from "../options/options.js";
import type { Request } from "../rules/fits.js";
import type { Space } from "../rules/name.js";

/** The lock that a call wants, and in which mode. */
export interface Target extends Request {
  readonly kind: LockKind;
  readonly space: Space;
  readonly name: string;
}

/** A lease whose `run` encloses a call. */
export interface Enclosing {
  readonly name: string;
  readonly token: string;
}

/** The options of one call, and the `run` scopes around it. */
export interface RequestOptions extends Options {
  /** The leases of the enclosing `run` scopes, innermost first. */
  readonly inside?: readonly Enclosing[];
  /** Its async context, if an event needs it. */
  readonly context?: CallContext | undefined;
  /** The event of the call, if a channel has a subscriber. */
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
    // A grant with less left would abort its signal at once.
    minUsefulMs: graceMs,
  };
}
