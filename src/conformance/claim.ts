import type { Claim, Store } from "../contract/store.js";
import { NO_LIMIT } from "../rules/fits.js";

/** An exclusive claim, for cases that call a store directly. */
export function claimOf(store: Store, name: string, ttlMs: number): Claim {
  return {
    space: "lock",
    name,
    owner: store.runtime.random.id(),
    mode: "exclusive",
    weight: 1,
    limit: NO_LIMIT,
    ttlMs,
    meta: {},
    span: 1,
    transferable: false,
    ownSession: false,
    storeTimeoutMs: 10_000,
  };
}
