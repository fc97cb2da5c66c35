/**
 * Several locks at once, all or none. Every caller acquires the members one by one in the byte
 * order of their names, so callers cannot wait for each other in a circle.
 */
import { present } from "../errors/assert.js";
import {
  AcquireTimeoutError,
  aboutLock,
  type BlockedBy,
  InvalidOptionError,
  type LeaseLostError,
} from "../errors/index.js";
import type { Lease } from "../lease/lease.js";
import type { LeaseClient } from "../lease/lease-client.js";
import { LAST_TRY_MS } from "../lease/request-limit.js";
import { TRY_TIMEOUT_MS } from "../lease/request-options.js";
import { knownOptions } from "../options/known-options.js";
import {
  type AcquireOptions,
  OPTION_NAMES,
  type Options,
  resolveOptions,
} from "../options/options.js";
import { NO_LIMIT } from "../rules/fits.js";
import { withJson } from "../rules/json.js";
import { compareNames } from "../rules/name.js";
import { within } from "../time/timers.js";
import { checkBody, type Lock, StoreLock, type TryResult } from "./lock.js";
import { runInScopes } from "./run-scopes.js";
import type { Releasable } from "./run-under.js";
import { tracedRun } from "./traced-run.js";

/** Leases that are held and released together. Each name has its own token. */
export interface LeaseSet extends AsyncDisposable {
  /** One lease for each lock, in the byte order of their names. */
  readonly leases: readonly Lease[];
  /** Aborts when the first lease is lost. */
  readonly signal: AbortSignal;
  /** `lost` as soon as one lease is lost, `released` as soon as one is released. */
  readonly state: "held" | "released" | "lost";
  /** The fencing token of one of the names. */
  tokenOf(name: string): bigint;
  /** How long all leases can be relied on without another renewal. */
  remainingMs(): number;
  /** Throws `LeaseLostError` unless all leases are held at this moment. */
  assertHeld(): void;
  /** Renews all leases now, for `ttlMs` or, by default, for the same time again. */
  renew(ttlMs?: number): Promise<void>;
  /** Releases all leases. Returns true if all of them were held until now. */
  release(): Promise<boolean>;
  /** For `JSON.stringify`: the state, and the JSON of each lease. */
  toJSON(): Record<string, unknown>;
}

type Part = Lease & Releasable;

class HeldSet implements LeaseSet {
  readonly leases: readonly Part[];
  #signal: AbortSignal | undefined;

  constructor(leases: readonly Part[]) {
    this.leases = leases;
  }

  get signal(): AbortSignal {
    this.#signal ??= AbortSignal.any(this.leases.map((lease) => lease.signal));
    return this.#signal;
  }

  get state(): LeaseSet["state"] {
    const states = this.leases.map((lease) => lease.state);
    if (states.includes("lost")) return "lost";
    return states.includes("released") ? "released" : "held";
  }

  get loss(): LeaseLostError | undefined {
    for (const lease of this.leases) if (lease.loss) return lease.loss;
    return undefined;
  }

  tokenOf(name: string): bigint {
    const lease = this.leases.find((one) => one.name === name);
    if (!lease) throw new InvalidOptionError("name", name, "must be one of the names held");
    return lease.token;
  }

  remainingMs(): number {
    return Math.min(...this.leases.map((lease) => lease.remainingMs()));
  }

  assertHeld(): void {
    for (const lease of this.leases) lease.assertHeld();
  }

  async renew(ttlMs?: number): Promise<void> {
    await Promise.all(this.leases.map((lease) => lease.renew(ttlMs)));
  }

  async release(): Promise<boolean> {
    const released = await Promise.all(this.leases.map((lease) => lease.release()));
    return !released.includes(false);
  }

  toJSON(): Record<string, unknown> {
    return { state: this.state, leases: this.leases.map((lease) => lease.toJSON()) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}

export class AllLock implements Lock<LeaseSet> {
  readonly name: string;
  readonly members: readonly StoreLock[];
  readonly #client: LeaseClient;
  readonly #defaults: AcquireOptions;
  readonly #base: Options;

  /** `defaults` override those of every member; `base` has the times that they do not set. */
  constructor(
    client: LeaseClient,
    locks: readonly Lock<unknown>[],
    defaults: AcquireOptions,
    base: Options,
  ) {
    this.#client = client;
    this.#base = base;
    if (!Array.isArray(locks) || locks.length === 0) {
      throw new InvalidOptionError("locks", locks, "must be a list of at least one lock");
    }
    const members = locks.flatMap((lock) =>
      lock instanceof AllLock ? lock.#membersAsSet() : [lock],
    );
    const own = members.map((member) => {
      if (member instanceof StoreLock && member.client === client) return member;
      const rule = "must hold locks of this Holdfast only";
      throw new InvalidOptionError("locks", String(member), rule);
    });
    this.members = own.sort((a, b) => compareNames(a.name, b.name));
    this.name = this.members.map((member) => member.name).join(" + ");
    this.#defaults = this.#known(defaults);
    this.members.forEach((member, index) => {
      if (member.name !== this.members[index + 1]?.name) return;
      throw new InvalidOptionError("locks", member.name, "must not name the same lock twice");
    });
  }

  #known(given: AcquireOptions): AcquireOptions {
    return this.#aboutIt(() => knownOptions(given, OPTION_NAMES));
  }

  #aboutIt<T>(check: () => T): T {
    return aboutLock(this.name, this.#client.store.name, check);
  }

  /** The members, with the defaults of this set over their own. */
  #membersAsSet(): readonly StoreLock[] {
    return this.members.map((member) => member.with(this.#defaults));
  }

  async acquire(options: AcquireOptions = {}): Promise<LeaseSet> {
    return this.#acquire(options);
  }

  async tryAcquire(options: AcquireOptions = {}): Promise<LeaseSet | null> {
    const taken = await this.#try(options);
    return taken instanceof HeldSet ? taken : null;
  }

  run<T>(body: (leases: LeaseSet) => T | Promise<T>, options: AcquireOptions = {}): Promise<T> {
    return this.#traced(body, async (traced) => {
      this.#aboutIt(() => checkBody(traced, "run("));
      return this.#runUnder(await this.#acquire(options), options, traced);
    });
  }

  tryRun<T>(
    body: (leases: LeaseSet) => T | Promise<T>,
    options: AcquireOptions = {},
  ): Promise<TryResult<T>> {
    return this.#traced(body, async (traced) => {
      this.#aboutIt(() => checkBody(traced, "tryRun("));
      const taken = await this.#try(options);
      if (!(taken instanceof HeldSet)) return withJson({ ran: false, holder: taken.holder });
      return { ran: true, value: await this.#runUnder(taken, options, traced) };
    });
  }

  async isHeld(): Promise<boolean> {
    const held = await Promise.all(this.members.map((member) => member.isHeld()));
    return held.includes(true);
  }

  #traced<T, R>(
    body: (leases: LeaseSet) => T | Promise<T>,
    run: (body: (leases: LeaseSet) => T | Promise<T>) => Promise<R>,
  ): Promise<R> {
    const about = { kind: "all", space: "lock", name: this.name } as const;
    const target = { ...about, mode: "exclusive", weight: 1, limit: NO_LIMIT } as const;
    return tracedRun(this.#client.store, () => target, body, run);
  }

  /** Acquires without waiting, unless the call itself gives `waitMs`. Ignores its default. */
  async #try(given: AcquireOptions): Promise<HeldSet | { readonly holder: BlockedBy | null }> {
    const { waitMs, ...options } = this.#known(given);
    try {
      return await this.#acquire({ ...options, waitMs: waitMs ?? 0 }, waitMs === undefined);
    } catch (error) {
      if (error instanceof AcquireTimeoutError) return error;
      throw error;
    }
  }

  #runUnder<T>(
    set: HeldSet,
    options: AcquireOptions,
    body: (leases: LeaseSet) => T | Promise<T>,
  ): Promise<T> {
    const merged = this.#over(options);
    const held = set.leases.map((lease, index) => {
      const member = present(this.members[index], "a set has a lease for each of its members");
      return member.holding(lease, merged);
    });
    return runInScopes(this.#client, held, (parts) => new HeldSet(parts), body);
  }

  /** Merges the given options over the defaults. Ignores options that are undefined. */
  #over(given: AcquireOptions): AcquireOptions {
    const entries = Object.entries(this.#known(given)).filter(([, value]) => value !== undefined);
    return { ...this.#defaults, ...Object.fromEntries(entries) };
  }

  /** `isTry`: without a `waitMs` of the caller, `storeTimeoutMs` limits the call. */
  async #acquire(given: AcquireOptions, isTry = false): Promise<HeldSet> {
    const { runtime, traits } = this.#client.store;
    const { clock } = runtime;
    const options = this.#over(given);
    const { waitMs = this.#base.waitMs } = options;
    const { storeTimeoutMs = this.#base.storeTimeoutMs } = options;
    this.#aboutIt(() => resolveOptions({ waitMs }, traits, this.#base));
    const untilMs = clock.nowMs() + waitMs;
    const endMs = untilMs + (isTry ? (storeTimeoutMs ?? TRY_TIMEOUT_MS) : LAST_TRY_MS);
    for (;;) {
      const set = await this.#gather((member) => {
        const nowMs = clock.nowMs();
        const rest = nowMs < untilMs ? {} : { storeTimeoutMs: Math.max(1, endMs - nowMs) };
        return member
          .acquire({ ...options, waitMs: Math.max(0, untilMs - nowMs), ...rest }, isTry)
          .catch((error) => inTotal(waitMs, error));
      }, endMs);
      if (set?.state === "held") return set;
      // A lease was lost while waiting for the next lock: start over if there is time.
      if (set) await this.#releaseAll(set.leases, endMs);
      if (clock.nowMs() >= untilMs) {
        throw new AcquireTimeoutError(waitMs, null, { lockName: this.name });
      }
    }
  }

  /** Acquires the members in order, and releases them if one fails. The call ends at `endMs`. */
  async #gather(
    take: (member: StoreLock) => Promise<Lease | null>,
    endMs: number,
  ): Promise<HeldSet | null> {
    const leases: Lease[] = [];
    try {
      for (const member of this.members) {
        const lease = await take(member);
        if (lease) leases.push(lease);
        else break;
      }
      if (leases.length === this.members.length) return new HeldSet(leases as Part[]);
    } catch (error) {
      await this.#releaseAll(leases, endMs);
      throw error;
    }
    await this.#releaseAll(leases, endMs);
    return null;
  }

  /** Waits for the releases until `endMs`; if the store is silent, they go on after that. */
  async #releaseAll(leases: readonly Lease[], endMs: number): Promise<void> {
    if (leases.length === 0) return;
    const { clock, timers } = this.#client.store.runtime;
    const released = Promise.all(leases.map((lease) => lease.release()));
    const restMs = Math.max(0, endMs - clock.nowMs());
    await within(timers, restMs, released).catch(() => {});
  }
}

/** Names the blocked member in the error, with the total time of the wait. */
function inTotal(waitMs: number, error: unknown): never {
  if (!(error instanceof AcquireTimeoutError)) throw error;
  const { holder, lockName, store, isOwn } = error;
  throw new AcquireTimeoutError(waitMs, holder, { lockName, store, isOwn });
}
