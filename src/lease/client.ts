/**
 * The life of leases in this process: acquires them, keeps them, gives them back. One client per store.
 */
import { ClosedError, type LossReason } from "../errors.js";
import type { ReleaseEvent } from "../events.js";
import type { Options } from "../options.js";
import { events } from "../publish.js";
import type { Request } from "../rules/fits.js";
import { keyOf, type Space } from "../rules/name.js";
import type { Busy, Claim, Grant, Meta, Store } from "../store.js";
import { Cohort } from "./cohort.js";
import { decodeHandle } from "./handle.js";
import type { Hold, Tenant } from "./hold.js";
import { Keeper } from "./keeper.js";
import { HeldLease, type Lease } from "./lease.js";
import { WaitTime } from "./wait-time.js";

/** Which lock is meant, and how. */
export interface Target extends Request {
  readonly space: Space;
  readonly name: string;
}

/** How long a release may take beyond which nobody waits for it. */
const RELEASE_MS = 5_000;

/** A hold with one lease: the usual case where no turns are taken. */
class SoleTenant implements Tenant {
  lease: HeldLease | null = null;

  onWarning(): void {
    this.lease?.onWarning();
  }

  onLost(reason: LossReason, detail: string): void {
    this.lease?.onLost(reason, detail);
  }
}

export class Client {
  readonly store: Store;
  readonly #keeper: Keeper;
  readonly #cohorts = new Map<string, Cohort>();
  readonly #waits = new Set<WaitTime>();
  #closing: Promise<void> | undefined;

  constructor(store: Store) {
    this.store = store;
    this.#keeper = new Keeper(store);
  }

  get isClosed(): boolean {
    return this.#closing !== undefined;
  }

  assertOpen(): void {
    if (this.#closing) throw new ClosedError({ store: this.store.name });
  }

  /** A wait that ends with the client. The caller settles it by `endWait`. */
  startWait(waitMs: number, signal: AbortSignal | undefined): WaitTime {
    const wait = new WaitTime(this.store.port, waitMs, signal);
    this.#waits.add(wait);
    return wait;
  }

  endWait(wait: WaitTime): void {
    wait.settle();
    this.#waits.delete(wait);
  }

  /** `wait` null: not to wait at all. */
  acquire(target: Target, options: Options, wait: WaitTime | null): Promise<HeldLease | Busy> {
    if (this.#takesTurns(target, options)) {
      const key = keyOf(target.space, target.name);
      const cohort = this.#cohorts.get(key) ?? this.#openCohort(key, target, options);
      if (cohort.takes(options)) return cohort.join(options, wait);
    }
    return this.#acquireAlone(target, options, wait);
  }

  /** Continues a lease that another process handed over; null when it is gone. */
  async resume(handle: string, options: Options): Promise<HeldLease | null> {
    this.assertOpen();
    const { claim, token, session } = decodeHandle(handle);
    const grant = await this.store.resume(claim, token, session);
    if (!grant) return null;
    return this.#keep(grant, { ...options, ttlMs: claim.ttlMs });
  }

  held(): Lease[] {
    const leases: Lease[] = [];
    for (const tenant of this.#keeper.tenants()) {
      const { lease } = tenant as Cohort | SoleTenant;
      if (lease) leases.push(lease);
    }
    return leases;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    for (const wait of [...this.#waits]) wait.end("closed");
    // A cohort may only learn of its grant while we release: what comes in late goes back, too.
    for (let leases = this.held(); leases.length > 0; leases = this.held()) {
      await Promise.all(leases.map((lease) => lease.release()));
    }
    this.#keeper.stop();
    await this.store.close();
  }

  #takesTurns(target: Target, options: Options): boolean {
    return (
      options.fairness === "bounded" &&
      options.cohortLimit > 1 &&
      options.renew &&
      !options.transferable &&
      options.maxHoldMs === Number.POSITIVE_INFINITY &&
      target.mode === "exclusive" &&
      target.space === "lock" &&
      this.store.traits.tokenSpan
    );
  }

  #openCohort(key: string, target: Target, options: Options): Cohort {
    const cohort = new Cohort(options, {
      store: this.store,
      keeper: this.#keeper,
      claim: (memberOptions, span) => this.#claim(target, memberOptions, span),
      release: (hold) => this.#release(hold),
      onIdle: () => this.#cohorts.delete(key),
    });
    this.#cohorts.set(key, cohort);
    return cohort;
  }

  async #acquireAlone(
    target: Target,
    options: Options,
    wait: WaitTime | null,
  ): Promise<HeldLease | Busy> {
    const outcome = await this.store.acquire(this.#claim(target, options, 1), wait);
    return outcome.type === "granted" ? this.#keep(outcome, options) : outcome;
  }

  #keep(grant: Grant, options: Options): HeldLease {
    const tenant = new SoleTenant();
    const hold = this.#keeper.keep(grant, tenant, options);
    const { clock } = this.store.port;
    const lease = new HeldLease(hold, grant.token, hold.startMs, this.#keeper, clock, (keep) => {
      this.#keeper.drop(hold);
      return this.#release(hold, keep);
    });
    tenant.lease = lease;
    return lease;
  }

  #claim(target: Target, options: Options, span: number): Claim {
    const { space, name, mode, weight, limit } = target;
    const { ttlMs, meta, transferable, renew, maxHoldMs, storeTimeoutMs } = options;
    const alone = transferable || !renew || maxHoldMs !== Number.POSITIVE_INFINITY;
    const owner = this.store.port.random.id();
    return {
      space,
      name,
      owner,
      mode,
      weight,
      limit,
      ttlMs,
      meta,
      span,
      transferable,
      alone,
      storeTimeoutMs,
    };
  }

  /** Never throws and never takes longer than the lease lives: what the store missed, expires. */
  async #release(hold: Hold, keep?: { ttlMs: number; meta: Meta }): Promise<boolean> {
    const { clock } = this.store.port;
    const withinMs = Math.min(Math.max(0, hold.deadlineMs - clock.nowMs()), RELEASE_MS);
    let outcome: ReleaseEvent["outcome"];
    let error: unknown;
    try {
      const wasHeld = await this.store.release(hold.grant, withinMs, keep);
      outcome = wasHeld ? "released" : "lost";
    } catch (reason) {
      outcome = "failed";
      error = reason;
    }
    if (events.release.hasSubscribers) {
      const { space, name } = hold.grant.claim;
      const heldMs = clock.nowMs() - hold.startMs;
      const about = { name, space, store: this.store.name, token: hold.grant.token };
      events.release.publish({ ...about, heldMs, outcome, error });
    }
    return outcome !== "lost";
  }
}
