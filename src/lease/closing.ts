import type { Store } from "../contract/store.js";
import { StoreError } from "../errors/index.js";
import { type Timer, within } from "../time/timers.js";
import { explain } from "./explain.js";
import type { LeaseRenewer } from "./lease-renewer.js";
import { RELEASE_MS, type Releases } from "./releases.js";

/** `close` checks after this time whether the store can be reached at all. */
const DOUBT_MS = 1_000;

/** Releases every lease of a client that closes, if the store can be reached. */
export class Closing {
  readonly #store: Store;
  readonly #leaseRenewer: LeaseRenewer;
  readonly #releases: Releases;

  constructor(store: Store, leaseRenewer: LeaseRenewer, releases: Releases) {
    this.#store = store;
    this.#leaseRenewer = leaseRenewer;
    this.#releases = releases;
  }

  /** Releases all leases, but does not wait for a store that cannot be reached. */
  async giveBackAll(): Promise<void> {
    const { timers } = this.#store.runtime;
    let timer: Timer | undefined;
    const unreachable = new Promise<void>((resolve) => {
      timer = timers.after(DOUBT_MS, () => {
        void this.#isUnreachable().then((isTrue) => isTrue && resolve());
      });
    });
    const work = Promise.race([this.#giveBackRepeatedly(), unreachable]);
    await within(timers, RELEASE_MS, work).catch(() => {});
    timer?.cancel();
  }

  async #isUnreachable(): Promise<boolean> {
    const silence = new StoreError("The store is silent.", { outcome: "unknown" });
    return (await explain(this.#store, silence)) !== silence;
  }

  async #giveBackRepeatedly(): Promise<void> {
    do {
      await this.#giveBack();
      await this.#leaseRenewer.stop();
      // A grant that has just arrived becomes a lease only a few promises later.
      await new Promise<void>((resume) => this.#store.runtime.timers.soon(resume));
    } while (!this.#releases.isIdle || this.#leaseRenewer.leases().length > 0);
  }

  async #giveBack(): Promise<void> {
    // A local queue may get a grant during these releases; it is released, too.
    for (
      let leases = this.#leaseRenewer.leases();
      leases.length > 0;
      leases = this.#leaseRenewer.leases()
    ) {
      await Promise.all(leases.map((lease) => lease.close()));
    }
    await this.#releases.settled();
  }
}
