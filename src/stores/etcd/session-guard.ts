/**
 * The guard of a session: a key that keeps late copies of requests from making entries.
 *
 * The guard is bound to the lease of its session. Every request that makes an entry compares the
 * revision of the guard with the last one known here. The removal of an entry whose request may
 * have a copy under way also writes the guard, in the same transaction. The revision of the guard
 * is then greater than all that were ever compared with, and never comes back, so etcd refuses the
 * copy whenever it arrives. Other requests of the session that compared with the old revision are
 * refused as well, and are sent again with the new one. The guard ends with its lease. A lease that
 * a late copy of its request makes anew has no guard.
 */
import type { Compare, RequestOp } from "./etcd-client.js";
import { isAt, put } from "./operations.js";

export class SessionGuard {
  readonly key: Buffer;
  readonly #lease: string;
  #revision: bigint;
  #isLost = false;

  constructor(key: Buffer, lease: string, revision: bigint) {
    this.key = key;
    this.#lease = lease;
    this.#revision = revision;
  }

  /** The last known revision. */
  get revision(): bigint {
    return this.#revision;
  }

  /** The guard could not be written: only the end of the session keeps late copies away. */
  get isLost(): boolean {
    return this.#isLost;
  }

  lose(): void {
    this.#isLost = true;
  }

  isUnchanged(): Compare {
    return isAt(this.key, this.#revision);
  }

  writing(): RequestOp {
    return put(this.key, "", this.#lease);
  }

  /** Revisions may be learned in any order. */
  learn(revision: string): void {
    const learned = BigInt(revision);
    if (learned > this.#revision) this.#revision = learned;
  }
}
