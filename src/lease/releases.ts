import type { Grant, Store } from "../contract/store.js";
import type { ReleaseEvent } from "../events/events.js";
import type { HeldLease, OnceMark, Releaser } from "./lease.js";
import type { LeaseRenewer } from "./lease-renewer.js";

/** Longest duration of a release; the end of the lease ends it sooner. */
export const RELEASE_MS = 5_000;

/** Releases leases in the store, and counts the releases under way. */
export class Releases implements Releaser {
  readonly #store: Store;
  readonly #leaseRenewer: LeaseRenewer;
  // A counter, because a set of promises would slow down every release.
  #underWay = 0;
  #onIdle: () => void = () => {};

  constructor(store: Store, leaseRenewer: LeaseRenewer) {
    this.#store = store;
    this.#leaseRenewer = leaseRenewer;
  }

  get isIdle(): boolean {
    return this.#underWay === 0;
  }

  /**
   * Stops to keep the held grant of the lease and releases it. Never throws, and ends with the
   * lease at the latest: if the release does not reach the store, the grant expires there.
   *
   * With `release: "sent"` the lease ends in this process before the release is sent, and the
   * release continues in the background.
   */
  giveBack(lease: HeldLease, keep?: OnceMark): Promise<boolean> {
    const { held } = lease;
    this.#leaseRenewer.drop(held);
    const { runtime, traits } = this.#store;
    const restMs = held.deadlineMs - runtime.clock.nowMs();
    const withinMs = Math.min(Math.max(0, restMs), RELEASE_MS);
    this.#underWay += 1;
    // Not an async function, whose frame would be a seventh of the memory of an acquire and
    // release.
    const answered = releaseIn(this.#store, held.grant, withinMs, keep).then(
      (wasHeld) => this.#end(lease, wasHeld ? "released" : "lost"),
      (error: unknown) => this.#end(lease, "failed", error),
    );
    // The caller of `once` has to know that the mark is stored.
    if (!lease.isReleaseSent || !traits.ordersReleases || keep) return answered;
    // By then the requests of this turn of the event loop have been sent.
    return new Promise((resolve) => runtime.timers.soon(() => resolve(true)));
  }

  /** Resolves when no release is under way. Each release has a limit, so this ends too. */
  async settled(): Promise<void> {
    if (this.isIdle) return;
    await new Promise<void>((resume) => {
      this.#onIdle = resume;
    });
  }

  #end(lease: HeldLease, outcome: ReleaseEvent["outcome"], error?: unknown): boolean {
    this.#underWay -= 1;
    if (this.#underWay === 0) this.#onIdle();
    if (outcome === "lost") lease.onMissing();
    lease.publishRelease(outcome, error);
    return outcome !== "lost";
  }
}

/** Turns a synchronous throw of a store into a rejection. */
export function releaseIn(
  store: Store,
  grant: Grant,
  withinMs: number,
  keep?: OnceMark,
): Promise<boolean> {
  try {
    return store.release(grant, withinMs, keep);
  } catch (error) {
    return Promise.reject(error);
  }
}
