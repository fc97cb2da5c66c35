import type { Grant, Store } from "../contract/store.js";
import type { ReleaseEvent } from "../events/events.js";
import type { HeldLease, OnceMark, Releaser } from "./lease.js";
import type { LeaseRenewer } from "./lease-renewer.js";

/** A release does not take longer than this, and the end of the lease ends it before. */
export const RELEASE_MS = 5_000;

/** Gives leases back to the store, and knows which releases are under way. */
export class Releases implements Releaser {
  readonly #store: Store;
  readonly #leaseRenewer: LeaseRenewer;
  // Counted, not collected: a set of promises would cost every release more than its bookkeeping.
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
   * Stops to keep the held grant of the lease and releases it. Never throws, and never takes longer
   * than the lease lives: a grant whose release did not reach the store expires there.
   *
   * A lease with `release: "sent"` ends here before its release is sent, so no code of this process
   * relies on it while the store still counts it as held. The release goes on in the background.
   */
  giveBack(lease: HeldLease, keep?: OnceMark): Promise<boolean> {
    const { held } = lease;
    this.#leaseRenewer.drop(held);
    const { runtime, traits } = this.#store;
    const restMs = held.deadlineMs - runtime.clock.nowMs();
    const withinMs = Math.min(Math.max(0, restMs), RELEASE_MS);
    this.#underWay += 1;
    // No async function: its frame would be a seventh of all bytes of a pair.
    const answered = releaseIn(this.#store, held.grant, withinMs, keep).then(
      (wasHeld) => this.#end(lease, wasHeld ? "released" : "lost"),
      (error: unknown) => this.#end(lease, "failed", error),
    );
    // The caller of `once` has to know that the mark is there.
    if (!lease.isReleaseSent || !traits.ordersReleases || keep) return answered;
    // Requests of this turn are sent by then.
    return new Promise((resolve) => runtime.timers.soon(() => resolve(true)));
  }

  /** Resolves when no release is under way; each is bounded, and so is this. */
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

/** A store that throws at once is a store that failed. */
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
