import type { Store } from "../contract/store.js";
import type { Space } from "../rules/name.js";
import { SingleMap } from "../rules/single-map.js";
import type { LeaseRenewer } from "./lease-renewer.js";
import type { LeaseRequest } from "./lease-request.js";
import { areEqual, LocalQueue } from "./local-queue.js";
import type { Releases } from "./releases.js";
import type { Enclosing, Target } from "./request-options.js";

/** The space in which requests take turns. */
const TURNS_IN: Space = "lock";

/**
 * The local queues of one client by name, and the uncontended requests, which have none.
 */
export class LocalQueues {
  readonly store: Store;
  readonly leaseRenewer: LeaseRenewer;
  readonly releases: Releases;
  /** By name without space: requests take turns in one space only. */
  readonly #byName = new SingleMap<string, LocalQueue | LeaseRequest>();

  constructor(store: Store, leaseRenewer: LeaseRenewer, releases: Releases) {
    this.store = store;
    this.leaseRenewer = leaseRenewer;
    this.releases = releases;
  }

  /**
   * Returns the queue for a request, or null if the request asks the store itself: it is the only
   * one of this process for the lock, or its options do not agree with those of the others.
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

  /** The `run` scopes around requests that wait for a turn, by the name of the lock. */
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
