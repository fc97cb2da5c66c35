import type { LossReason } from "../errors.js";
import type { Options } from "../options.js";
import type { Target } from "./call-options.js";
import type { Cohort } from "./cohort.js";
import type { Cohorts } from "./cohorts.js";
import type { Tenant } from "./hold.js";
import type { HeldLease, LeaseGiver } from "./lease.js";
import type { WaitTime } from "./wait-time.js";

/**
 * A call that asks for a lock, or holds it, while no other call of its process wants the lock: it
 * has a grant of its own, for one turn. The first call that comes meanwhile makes a cohort. If this
 * call holds, or is granted the lock at once, the cohort has its hold: the members wait in this
 * process, and ask the store when the hold ends. If the store lets this call wait, the cohort
 * stands in the store's queue behind it.
 */
export class LoneCall implements Tenant, LeaseGiver {
  readonly key: string;
  readonly target: Target;
  readonly options: Options;
  readonly wait: WaitTime | null;
  readonly #cohorts: Cohorts;
  /** The cohort that has the hold of this call, or will have it if the lock is free. */
  #cohort: Cohort | null = null;
  /** No other call has come, and this one has not ended: `Cohorts` knows it. */
  isAlone = true;
  lease: HeldLease | null = null;

  constructor(
    lock: { readonly key: string; readonly target: Target },
    options: Options,
    wait: WaitTime | null,
    cohorts: Cohorts,
  ) {
    this.key = lock.key;
    this.target = lock.target;
    this.options = options;
    this.wait = wait;
    this.#cohorts = cohorts;
  }

  /**
   * Another call has come. Its cohort takes over the hold, or learns what becomes of the request;
   * a cohort that stands in the store's queue behind this call is not told.
   */
  yieldTo(cohort: Cohort | null): void {
    this.isAlone = false;
    this.#cohort = cohort;
    if (!cohort) return;
    if (this.lease) return cohort.adopt(this.lease);
    this.wait?.onNextReport(() => {
      // The call may have ended already.
      if (!this.#cohort) return;
      this.#cohort = null;
      cohort.onQueuedAhead();
    });
  }

  /** The store granted the lock to this call. */
  hold(lease: HeldLease): void {
    this.lease = lease;
    this.#cohort?.adopt(lease);
  }

  onWarning(): void {
    this.lease?.onWarning();
  }

  onLost(reason: LossReason, detail: string): void {
    this.leave();
    this.lease?.onLost(reason, detail);
  }

  giveBack(lease: HeldLease): Promise<boolean> {
    if (this.#cohort) return this.#cohort.giveBack(lease);
    this.leave();
    return this.#cohorts.releases.giveBack(lease);
  }

  /** The call has ended: without a lease, perhaps by a failure of the store, or with its lease. */
  leave(failure?: unknown): void {
    if (this.isAlone) this.#cohorts.remove(this.key);
    this.isAlone = false;
    // A cohort that has the hold goes on with it.
    if (this.lease) return;
    const cohort = this.#cohort;
    this.#cohort = null;
    cohort?.onEndAhead(failure);
  }
}
