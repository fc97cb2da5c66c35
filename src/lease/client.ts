/**
 * The life of leases in this process: acquires them, keeps them, gives them back. One client per
 * store.
 */
import {
  ClosedError,
  InternalError,
  InvalidOptionError,
  type LossReason,
  StoreError,
} from "../errors.js";
import type { LockKind, ReleaseEvent } from "../events.js";
import { type Options, resolveOptions } from "../options.js";
import { callContext, events } from "../publish.js";
import { NO_LIMIT, type Request } from "../rules/fits.js";
import { keyOf, type Space } from "../rules/name.js";
import type { Busy, Claim, Grant, Store } from "../store.js";
import { type Timer, within } from "../time/timers.js";
import { unlessAborted } from "./abort-listeners.js";
import { type CallOptions, Cohort, type CohortDuties, type Enclosing } from "./cohort.js";
import { decodeHandle } from "./handle.js";
import type { Tenant } from "./hold.js";
import { Keeper } from "./keeper.js";
import { HeldLease, type Keep, type Lease, type Origin } from "./lease.js";
import { noteQueued, traced } from "./traced.js";
import { WaitTime } from "./wait-time.js";

/** Which lock is meant, and how. */
export interface Target extends Request {
  readonly kind: LockKind;
  readonly space: Space;
  readonly name: string;
}

/** How long a release may take beyond which nobody waits for it. */
const RELEASE_MS = 5_000;
/** When `close` has waited so long, it looks whether the store is there at all. */
const DOUBT_MS = 1_000;

/** How long a store may look for the reason of a failure. */
const EXPLAIN_MS = 1_000;

/** How long the last try at the end of a wait may take, and the store be silent. */
export const LAST_TRY_MS = 2_000;
const LAST_SILENCE_MS = 1_800;

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

/** What came of asking for a lock. */
export type Outcome = { readonly type: "granted"; readonly lease: HeldLease } | Busy;

/** A store tells one listener what becomes of its grants, so it has one client. */
const taken = new WeakSet<Store>();

export class Client {
  readonly store: Store;
  readonly #keeper: Keeper;
  readonly #cohorts = new Map<string, Cohort>();
  readonly #duties: CohortDuties;
  readonly #waits = new Set<WaitTime>();
  #releasing = 0;
  #onReleased: () => void = () => {};
  #closing: Promise<void> | undefined;

  constructor(store: Store) {
    if (taken.has(store)) {
      const rule = "must not belong to another Holdfast: make one store for each";
      throw new InvalidOptionError("store", store.name, rule);
    }
    taken.add(store);
    this.store = store;
    this.#keeper = new Keeper(store);
    this.#duties = {
      store,
      keeper: this.#keeper,
      claim: (target, options, span) => this.#claim(target, options, span),
      release: (last) => this.#release(last),
      onIdle: (key) => this.#cohorts.delete(key),
    };
  }

  assertOpen(): void {
    if (this.#closing) throw new ClosedError({ store: this.store.name });
  }

  /** A look at the store; one that `close` cut off says so, whatever the store made of it. */
  async look<T>(ask: () => Promise<T>): Promise<T> {
    this.assertOpen();
    try {
      return await ask();
    } catch (error) {
      this.assertOpen();
      throw await this.explained(error);
    }
  }

  /** The failure of a store that did not answer, with the reason where the store finds one. */
  async explained(error: unknown): Promise<unknown> {
    if (!(error instanceof StoreError) || !error.retryable || this.#closing) return error;
    return this.#explain(error);
  }

  async #explain(error: StoreError): Promise<StoreError> {
    const { store } = this;
    if (!store.explain) return error;
    return within(store.port.timers, EXPLAIN_MS, store.explain(error)).catch(() => error);
  }

  /** Asks for a lock, and tells about it. Throws when the caller's signal or the client ends. */
  request(target: Target, options: CallOptions, mayWait: boolean): Promise<Outcome> {
    const context = callContext();
    const call = context ? { ...options, context } : options;
    if (!events.acquire.hasSubscribers) return this.#ask(target, call, mayWait);
    return traced(this.store, target, call, mayWait, (told) => this.#ask(target, told, mayWait));
  }

  /** Lets time pass; over at once when the signal aborts or the client closes. */
  async pause(waitMs: number, signal: AbortSignal | undefined): Promise<void> {
    // Whoever closes has ended all waits already: it would not hear of this one.
    if (this.#closing) return;
    const wait = this.#startWait({ waitMs, signal });
    await new Promise<void>((resume) => wait.onEnd(resume));
    this.#endWait(wait);
  }

  /** Continues a lease that another process handed over; null when it is gone. */
  async resume(handle: string, options: Options): Promise<HeldLease | null> {
    this.assertOpen();
    const { claim, token, locator } = decodeHandle(handle);
    const { storeTimeoutMs } = options;
    const origin = { kind: kindOf(claim), context: callContext() };
    const resumed = resolveOptions({ ttlMs: claim.ttlMs }, this.store.traits, options);
    const asked = { ...claim, storeTimeoutMs };
    const grant = await this.look(() => this.store.resume(asked, token, locator));
    if (!grant) return null;
    const lease = this.#keep(grant, resumed, origin);
    if (!this.#closing) return lease;
    await lease.release();
    throw new ClosedError({ lockName: claim.name, store: this.store.name });
  }

  held(): Lease[] {
    return this.#leases();
  }

  /** The runs around calls that wait for a turn in this process, by the name they wait for. */
  *localWaits(): Iterable<{ readonly name: string; readonly inside: Iterable<Enclosing> }> {
    for (const cohort of this.#cohorts.values()) {
      yield { name: cohort.name, inside: cohort.enclosing() };
    }
  }

  close(): Promise<void> {
    // Set before anybody is told: a listener may call `close` in its turn.
    this.#closing ??= Promise.resolve().then(() => this.#close());
    return this.#closing;
  }

  async #close(): Promise<void> {
    for (const wait of [...this.#waits]) wait.end("closed");
    await this.#unlessDead(this.#giveBackAll());
    await this.store.close();
  }

  /** Waits for `work`, but not for a store that is out of reach. */
  async #unlessDead(work: Promise<void>): Promise<void> {
    const { timers } = this.store.port;
    let timer: Timer | undefined;
    const dead = new Promise<void>((resolve) => {
      timer = timers.after(DOUBT_MS, () => {
        void this.#isDead().then((isDead) => isDead && resolve());
      });
    });
    await within(timers, RELEASE_MS, Promise.race([work, dead])).catch(() => {});
    timer?.cancel();
  }

  async #isDead(): Promise<boolean> {
    const silence = new StoreError("The store is silent.", { outcome: "unknown" });
    return (await this.#explain(silence)) !== silence;
  }

  async #giveBackAll(): Promise<void> {
    do {
      await this.#giveBack();
      await this.#keeper.stop();
      // What the store answered in this very moment is known here a few promises later.
      await new Promise<void>((resume) => this.store.port.timers.soon(resume));
    } while (this.#releasing > 0 || this.#leases().length > 0);
  }

  async #giveBack(): Promise<void> {
    // A cohort may only learn of its grant while we release: what comes in late goes back, too.
    for (let leases = this.#leases(); leases.length > 0; leases = this.#leases()) {
      await Promise.all(leases.map((lease) => lease.close()));
    }
    // A release that was called before is still under way; it is bounded, so this is.
    if (this.#releasing > 0) {
      await new Promise<void>((resume) => {
        this.#onReleased = resume;
      });
    }
  }

  async #ask(target: Target, options: CallOptions, mayWait: boolean): Promise<Outcome> {
    this.assertOpen();
    options.signal?.throwIfAborted();
    const { name } = target;
    const wait = mayWait ? this.#startWait(options) : null;
    try {
      const outcome = await (wait
        ? this.#acquireWithin(target, options, wait)
        : this.#unlessAborted(this.#acquire(target, options, null), options));
      const isLease = !("type" in outcome);
      if (this.#closing) {
        if (isLease) await outcome.release();
        throw new ClosedError({ lockName: name, store: this.store.name });
      }
      if (isLease) return { type: "granted", lease: outcome };
      options.signal?.throwIfAborted();
      return { ...outcome, holder: outcome.holder ?? wait?.holder ?? null };
    } catch (failure) {
      const error = await this.explained(failure);
      const isOurs = error instanceof StoreError || error instanceof InternalError;
      throw isOurs ? error.about(name, this.store.name) : error;
    } finally {
      if (wait) this.#endWait(wait);
    }
  }

  /**
   * Waits for the lock. An outage must not look like a held lock: when the time is over and the
   * store has not answered of late, one last try lets the store itself say that the lock is held.
   */
  async #acquireWithin(
    target: Target,
    options: CallOptions,
    wait: WaitTime,
  ): Promise<HeldLease | Busy> {
    const outcome = await this.#acquire(target, options, wait);
    return isUntold(outcome, wait) ? this.#lastTry(target, options) : outcome;
  }

  async #lastTry(target: Target, options: CallOptions): Promise<HeldLease | Busy> {
    const storeTimeoutMs = Math.min(options.storeTimeoutMs, LAST_SILENCE_MS);
    const wait = this.#startWait({ ...options, waitMs: LAST_TRY_MS });
    wait.endsWithReport = true;
    try {
      const outcome = await this.#acquireAlone(target, { ...options, storeTimeoutMs }, wait);
      if (isUntold(outcome, wait)) {
        const message = `The store did not tell within ${LAST_TRY_MS} ms whether the lock is free.`;
        throw new StoreError(message, { outcome: "unknown" });
      }
      return "type" in outcome ? { ...outcome, holder: outcome.holder ?? wait.holder } : outcome;
    } finally {
      this.#endWait(wait);
    }
  }

  /** A caller that does not wait for the lock is not kept waiting by the store either. */
  #unlessAborted(asked: Promise<HeldLease | Busy>, { signal }: Options): Promise<HeldLease | Busy> {
    return signal ? unlessAborted(asked, signal, giveBackLate) : asked;
  }

  /** A wait that ends with the client. */
  #startWait({
    waitMs,
    signal,
    event,
  }: Pick<CallOptions, "waitMs" | "signal" | "event">): WaitTime {
    const onReport = event && noteQueued.bind(null, event);
    const wait = new WaitTime(this.store.port, waitMs, signal, onReport);
    this.#waits.add(wait);
    return wait;
  }

  #endWait(wait: WaitTime): void {
    wait.settle();
    this.#waits.delete(wait);
  }

  #acquire(target: Target, options: CallOptions, wait: WaitTime | null): Promise<HeldLease | Busy> {
    if (this.#takesTurns(target, options)) {
      const key = keyOf(target.space, target.name);
      const cohort = this.#cohorts.get(key) ?? this.#openCohort(key, target, options);
      if (cohort.takes(options, wait)) return cohort.join(target.kind, options, wait);
    }
    return this.#acquireAlone(target, options, wait);
  }

  #leases(): HeldLease[] {
    const leases: HeldLease[] = [];
    for (const tenant of this.#keeper.tenants()) {
      const { lease } = tenant as Cohort | SoleTenant;
      if (lease) leases.push(lease);
    }
    return leases;
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
    const cohort = new Cohort(key, target, options, this.#duties);
    this.#cohorts.set(key, cohort);
    return cohort;
  }

  async #acquireAlone(
    target: Target,
    options: CallOptions,
    wait: WaitTime | null,
  ): Promise<HeldLease | Busy> {
    const outcome = await this.store.acquire(this.#claim(target, options, 1), wait);
    if (outcome.type === "busy") return outcome;
    if (this.#cohorts.size > 0) {
      this.#cohorts.get(keyOf(target.space, target.name))?.outdate(outcome.token);
    }
    const { context } = options;
    const lease = this.#keep(outcome, options, { kind: target.kind, context });
    if (outcome.isHandoff) lease.publishHandoff(false);
    return lease;
  }

  #keep(grant: Grant, options: Options, origin: Origin): HeldLease {
    const tenant = new SoleTenant();
    const hold = this.#keeper.keep(grant, tenant, options);
    const lease = new HeldLease(hold, grant.token, hold.startMs, this.#keeper, origin, (keep) => {
      this.#keeper.drop(hold);
      return this.#release(lease, keep);
    });
    tenant.lease = lease;
    return lease;
  }

  #claim(target: Target, options: CallOptions, span: number): Claim {
    const { space, name, mode, weight, limit } = target;
    const { ttlMs, transferable, renew, maxHoldMs, graceMs, storeTimeoutMs, inside } = options;
    const meta = inside ? { ...options.meta, inside } : options.meta;
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
      // With less, its signal would abort at once.
      leastMs: graceMs,
    };
  }

  /** Never throws and never takes longer than the lease lives: what the store missed, expires. */
  async #release(lease: HeldLease, keep?: Keep): Promise<boolean> {
    const { hold } = lease;
    const { clock } = this.store.port;
    const withinMs = Math.min(Math.max(0, hold.deadlineMs - clock.nowMs()), RELEASE_MS);
    let outcome: ReleaseEvent["outcome"];
    let error: unknown;
    this.#releasing += 1;
    try {
      const wasHeld = await this.store.release(hold.grant, withinMs, keep);
      outcome = wasHeld ? "released" : "lost";
    } catch (reason) {
      outcome = "failed";
      error = reason;
    }
    this.#releasing -= 1;
    if (this.#releasing === 0) this.#onReleased();
    if (outcome === "lost") lease.onMissing();
    lease.publishRelease(outcome, error);
    return outcome !== "lost";
  }
}

/** A handle does not say by which kind of lock its lease was acquired. */
function kindOf({ space, mode, limit }: Claim): LockKind {
  if (space !== "lock") return space;
  if (mode === "exclusive") return "mutex";
  return limit === NO_LIMIT ? "read" : "semaphore";
}

/** The time is over, and whether the lock is held is not known. */
function isUntold(outcome: HeldLease | Busy, wait: WaitTime): boolean {
  return "type" in outcome && !outcome.mark && wait.endedBy === "time" && !wait.isInformed;
}

function giveBackLate(outcome: HeldLease | Busy): void {
  if (!("type" in outcome)) void outcome.release();
}
