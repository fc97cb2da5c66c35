import type { LossReason } from "../errors.js";
import type { Options } from "../options.js";
import type { RenewalReport } from "../store.js";
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
  readonly target: Target;
  readonly options: Options;
  /** Null once this call has a lease. */
  wait: WaitTime | null;
  readonly #cohorts: Cohorts;
  /** The cohort of the calls that came after this one; null once this call has ended. */
  #cohort: Cohort | null = null;
  #isAdopted = false;
  /** No other call has come, and this one has not ended: `Cohorts` knows it. */
  isAlone = true;
  lease: HeldLease | null = null;

  constructor(target: Target, options: Options, wait: WaitTime | null, cohorts: Cohorts) {
    this.target = target;
    this.options = options;
    this.wait = wait;
    this.#cohorts = cohorts;
  }

  /** Another call has come: its cohort learns what becomes of this one. */
  yieldTo(cohort: Cohort): void {
    this.isAlone = false;
    this.#cohort = cohort;
    if (this.lease) this.#isAdopted = cohort.adopt(this.lease);
    else this.wait?.onNextReport(() => this.#cohort?.onQueuedAhead());
  }

  /** The store granted the lock to this call. */
  hold(lease: HeldLease): void {
    this.lease = lease;
    this.wait = null;
    this.#isAdopted = this.#cohort?.adopt(lease) ?? false;
  }

  onWarning(): void {
    this.lease?.onWarning();
  }

  onRenewal(report: RenewalReport): void {
    this.lease?.onRenewal(report);
  }

  onLost(reason: LossReason, detail: string): void {
    this.leave();
    this.lease?.onLost(reason, detail);
  }

  giveBack(lease: HeldLease): Promise<boolean> {
    if (this.#isAdopted && this.#cohort) return this.#cohort.giveBack(lease);
    this.leave();
    return this.#cohorts.releases.giveBack(lease);
  }

  /** The call has ended: without a lease, perhaps by a failure of the store, or with its lease. */
  leave(failure?: unknown): void {
    if (this.isAlone) this.#cohorts.remove(this.target);
    this.isAlone = false;
    // A cohort that has the hold goes on with it.
    if (this.#isAdopted) return;
    const cohort = this.#cohort;
    this.#cohort = null;
    cohort?.onEndAhead(failure);
  }
}
