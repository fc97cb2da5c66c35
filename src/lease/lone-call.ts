import type { LossReason } from "../errors.js";
import type { Options } from "../options.js";
import type { Target } from "./call-options.js";
import type { Cohort } from "./cohort.js";
import type { Cohorts } from "./cohorts.js";
import type { Tenant } from "./hold.js";
import type { HeldLease, LeaseGiver } from "./lease.js";

/**
 * A call that asks for a lock, or holds it, while no other call of its process wants the lock: it
 * has a grant of its own, for one turn. A call that comes while this one asks stands in the store's
 * queue behind it, as the first of a cohort. The first call that comes while this one holds makes a
 * cohort around the hold: its members wait in this process, and ask the store when the hold ends.
 */
export class LoneCall implements Tenant, LeaseGiver {
  readonly key: string;
  readonly target: Target;
  readonly options: Options;
  readonly #cohorts: Cohorts;
  #cohort: Cohort | null = null;
  /** No other call has come, and this one has not ended: `Cohorts` knows it. */
  isAlone = true;
  lease: HeldLease | null = null;

  constructor(key: string, target: Target, options: Options, cohorts: Cohorts) {
    this.key = key;
    this.target = target;
    this.options = options;
    this.#cohorts = cohorts;
  }

  /** A cohort stands behind this call. If the call holds, the cohort has its hold from now on. */
  yieldTo(cohort: Cohort): void {
    this.isAlone = false;
    if (!this.lease) return;
    this.#cohort = cohort;
    this.lease.hold.tenant = cohort;
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

  /** The call has ended without a lease, or with its lease. */
  leave(): void {
    if (this.isAlone) this.#cohorts.remove(this.key);
    this.isAlone = false;
  }
}
