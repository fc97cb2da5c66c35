/** The leases that a client took by plain commands: all requests of one are of one length. */
import type { Driver } from "../redis-client/driver.js";

/** No count of changes: of a lease whose first request is not known. */
const NEVER = -1;

export interface OwnLease {
  /** The length of all its requests. */
  ttlMs: number;
  /** How often the connection had changed before the first request. */
  readonly changes: number;
  /** The requests that were not answered. */
  unanswered: number;
}

export class OwnLeases {
  readonly #driver: Driver;
  readonly #byOwner = new Map<string, OwnLease>();

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  /** The lease of an owner that asks for it, maybe again. */
  of(owner: string, ttlMs: number): OwnLease {
    const fresh = { ttlMs, changes: this.#driver.changes(), unanswered: 0 };
    return this.#byOwner.get(owner) ?? fresh;
  }

  /** Scripts may have given an unknown lease more time than it asks for now. */
  async toRenew(lock: string, owner: string, ttlMs: number): Promise<OwnLease> {
    if (!this.#byOwner.has(owner)) {
      const leftMs = Number(await this.#driver.send(lock, "pttl", [lock]));
      const lease = { ttlMs: Math.max(ttlMs, leftMs), changes: NEVER, unanswered: 0 };
      // Another renewal of the owner may have been faster.
      if (!this.#byOwner.has(owner)) this.keep(owner, lease);
    }
    return this.of(owner, ttlMs);
  }

  keep(owner: string, lease: OwnLease): void {
    this.#byOwner.set(owner, lease);
  }

  forget(owner: string): void {
    this.#byOwner.delete(owner);
  }

  /** Whether all requests of the lease were sent once, and answered. */
  isAnswered({ changes, unanswered }: OwnLease): boolean {
    const { hasOneConnection } = this.#driver;
    return hasOneConnection && unanswered === 0 && changes === this.#driver.changes();
  }
}
