import { NO_LIMIT } from "../rules/fits.js";
import type { Claim, Store } from "../store.js";

/** A plain exclusive claim, for cases that speak to a store itself. */
export function claimOf(store: Store, name: string, ttlMs: number): Claim {
  return {
    space: "lock",
    name,
    owner: store.port.random.id(),
    mode: "exclusive",
    weight: 1,
    limit: NO_LIMIT,
    ttlMs,
    meta: {},
    span: 1,
    transferable: false,
    alone: false,
    storeTimeoutMs: 10_000,
  };
}
