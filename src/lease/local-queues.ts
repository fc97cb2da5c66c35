import type { Store } from "../contract/store.js";
import type { Space } from "../rules/name.js";
import { SingleMap } from "../rules/single-map.js";
import type { LeaseRenewer } from "./lease-renewer.js";
import type { LeaseRequest } from "./lease-request.js";
import { areEqual, LocalQueue } from "./local-queue.js";
import type { Releases } from "./releases.js";
import type { Enclosing, Target } from "./request-options.js";

/** The space whose calls take turns. */
const TURNS_IN: Space = "lock";

/**
 * The local queues of one client, one for each name at which calls take turns, and the lone calls.
 */
export class LocalQueues {
  readonly store: Store;
  readonly leaseRenewer: LeaseRenewer;
  readonly releases: Releases;
  /** By name alone: calls take turns in one space. */
  readonly #byName = new SingleMap<string, LocalQueue | LeaseRequest>();

  constructor(store: Store, leaseRenewer: LeaseRenewer, releases: Releases) {
    this.store = store;
    this.leaseRenewer = leaseRenewer;
    this.releases = releases;
  }

  /**
   * The local queue that a call joins. Null where the call has a grant of its own: no other call of
   * this process is at the lock, or the call cannot take turns with those that are.
   */
  for(request: LeaseRequest): LocalQueue | null {
    const { target, options, wait } = request;
    if (!this.#takesTurns(request)) return null;
    const there = this.#byName.get(target.name);
    if (!there) {
      request.isUncontended = true;
      this.#byName.set(target.name, request);
      return null;
    }
    if (there instanceof LocalQueue) return there.takes(options, wait) ? there : null;
    const isKnown = wait !== null || there.lease !== null;
    if (!isKnown || !areEqual(options, there.options)) return null;
    const localQueue = LocalQueue.behind(there, this);
    this.#byName.set(target.name, localQueue);
    return localQueue;
  }

  remove({ name }: Target): void {
    this.#byName.delete(name);
  }

  /** The runs around calls that wait for a turn, by the name they wait for. */
  *waits(): Iterable<{ readonly name: string; readonly inside: Iterable<Enclosing> }> {
    for (const there of this.#byName.values()) {
      if (there instanceof LocalQueue) yield { name: there.name, inside: there.enclosing() };
    }
  }

  #takesTurns({ target, options }: LeaseRequest): boolean {
    return (
      options.fairness === "bounded" &&
      options.maxLocalTurns > 1 &&
      options.renew &&
      !options.transferable &&
      options.maxHoldMs === Number.POSITIVE_INFINITY &&
      target.mode === "exclusive" &&
      target.space === TURNS_IN &&
      this.store.traits.tokenSpan
    );
  }
}
