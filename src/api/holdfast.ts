import type { Examination, ExamineOptions } from "../contract/examination.js";
import type { LockView, Store } from "../contract/store.js";
import { aboutLock, InvalidOptionError, invalidValue, UnsupportedError } from "../errors/index.js";
import type { LockKind } from "../events/events.js";
import type { Lease } from "../lease/lease.js";
import { LeaseClient } from "../lease/lease-client.js";
import { AllLock, type LeaseSet } from "../locks/all.js";
import type { Deadlock } from "../locks/deadlocks.js";
import { type Election, StoreElection } from "../locks/election.js";
import { type Lock, StoreLock } from "../locks/lock.js";
import {
  beginOnce,
  type OnceBeginning,
  type OnceOptions,
  type OnceResult,
  once,
} from "../locks/once.js";
import { knownOptions } from "../options/known-options.js";
import {
  type AcquireOptions,
  checkCount,
  checkName,
  OPTION_NAMES,
  type Options,
  resolveOptions,
} from "../options/options.js";
import { NO_LIMIT } from "../rules/fits.js";
import type { Space } from "../rules/name.js";
import { Inspection, type ListOptions, type RevokeOptions } from "./inspection.js";

/** A pair of locks with one name: many readers, or one writer. */
export interface ReadWriteLock {
  /** The name that both locks share. */
  readonly name: string;
  /** The read lock. Any number of readers can hold it while there is no writer. */
  readonly read: Lock;
  /** The write lock. One writer holds it, and no reader. */
  readonly write: Lock;
}

const SHARED = "shared locks";
const EXCLUSIVE = "exclusive locks";
/** The stores that support every kind of lock. */
const COMPLETE_STORES = "memory, file, redis, postgres, etcd and zookeeper";

/**
 * Creates locks that live in a store and share default options. Each store belongs to one Holdfast.
 *
 * @example
 * import { Holdfast } from "holdfast";
 * import { memoryStore } from "holdfast/memory";
 *
 * const locks = new Holdfast(memoryStore(), { ttlMs: 10_000 });
 * await locks.mutex("invoice:42").run((lease) => save(lease.token));
 * await locks.close();
 */
export class Holdfast implements AsyncDisposable {
  readonly #client: LeaseClient;
  readonly #defaults: Options;
  readonly #inspection: Inspection;

  constructor(store: Store, defaults: AcquireOptions = {}) {
    if (typeof store?.acquire !== "function" || !store.traits) {
      const rule =
        "must be a store, such as redisStore({ client }) makes; connect(url) takes a URL";
      throw invalidValue("store", `a value of type ${typeof store}`, rule);
    }
    this.#defaults = resolveOptions(defaults, store.traits);
    this.#client = new LeaseClient(store);
    this.#inspection = new Inspection(this.#client);
  }

  /**
   * Returns a lock with one holder at a time.
   *
   * @example
   * await locks.mutex("invoice:42").run((lease) => save(lease.token));
   */
  mutex(name: string, defaults?: AcquireOptions): Lock {
    return this.#lock("mutex", name, NO_LIMIT, defaults);
  }

  /**
   * Returns a read lock and a write lock: many readers or one writer. New readers queue behind a
   * waiting writer, so writers never starve.
   *
   * @example
   * const catalog = locks.readWrite("catalog");
   * await catalog.read.run(() => render());
   * await catalog.write.run((lease) => rebuild(lease.token));
   */
  readWrite(name: string, defaults?: AcquireOptions): ReadWriteLock {
    return {
      name,
      read: this.#lock("read", name, NO_LIMIT, defaults),
      write: this.#lock("write", name, NO_LIMIT, defaults),
    };
  }

  /**
   * Returns a semaphore, of which at most `limit` permits are held at a time.
   *
   * @example
   * const smtp = locks.semaphore("smtp", 10);
   * await smtp.run(() => sendNewsletter(), { weight: 3 });
   */
  semaphore(name: string, limit: number, defaults?: AcquireOptions): Lock {
    const store = this.#client.store.name;
    const checked = aboutLock(name, store, () => checkCount("limit", limit));
    return this.#lock("semaphore", name, checked, defaults);
  }

  /**
   * Returns a lock that holds several locks of this Holdfast, all or none. A name means its mutex.
   *
   * @example
   * await locks.all(["account:1", "account:2"]).run((leases) => {
   *   return transfer(leases.tokenOf("account:1"), leases.tokenOf("account:2"));
   * });
   */
  all(locks: readonly (Lock<unknown> | string)[], defaults: AcquireOptions = {}): Lock<LeaseSet> {
    if (!Array.isArray(locks)) {
      throw new InvalidOptionError("locks", locks, "must be a list of locks or names");
    }
    const members = locks.map((lock) => (typeof lock === "string" ? this.mutex(lock) : lock));
    return new AllLock(this.#client, members, defaults, this.#defaults);
  }

  /**
   * Returns an election of one leader among all candidates. A candidate waits forever unless
   * `waitMs` is given here.
   *
   * @example
   * await locks.election("indexer").lead(async (lease) => {
   *   while (!lease.signal.aborted) await indexBatch(lease.token);
   * });
   */
  election(name: string, defaults?: AcquireOptions): Election {
    const store = this.#client.store.name;
    const given = aboutLock(name, store, () => knownOptions(defaults, OPTION_NAMES));
    const seat = this.#lock("election", name, NO_LIMIT, {
      ...given,
      waitMs: given.waitMs ?? Number.POSITIVE_INFINITY,
      fairness: "strict",
    });
    return new StoreElection(this.#client, seat);
  }

  /**
   * Runs `work` at least once, and not again for `keepMs` after a success.
   *
   * @example
   * const DAY_MS = 86_400_000;
   * const work = (lease: Lease) => sendReport(lease.token);
   * const result = await locks.once("report:2026-11-16", work, { keepMs: DAY_MS });
   * if (!result.ran) console.log(`${result.state} by ${result.by?.host}`);
   */
  async once<T>(
    name: string,
    work: (lease: Lease) => T | Promise<T>,
    options: OnceOptions,
  ): Promise<OnceResult<T>> {
    checkName(name);
    this.#demandTrait(this.#client.store.traits.marks, "once");
    return once(this.#client, name, work, options, this.#defaults);
  }

  /**
   * Starts a `once` whose work ends elsewhere: in a callback, a later request, another function.
   *
   * @example
   * await using run = await locks.beginOnce("report:2026-11-16", { keepMs: 86_400_000 });
   * if (!run.began) return;
   * await writeReport();
   * await run.finish();
   */
  async beginOnce(name: string, options: OnceOptions): Promise<OnceBeginning> {
    checkName(name);
    this.#demandTrait(this.#client.store.traits.marks, "once");
    return beginOnce(this.#client, name, options, this.#defaults);
  }

  /**
   * Returns the current holders and waiters of a lock.
   *
   * @example
   * const { holders, waiters } = await locks.inspect("invoice:42");
   * console.log(holders[0]?.meta, `${waiters.length} wait`);
   */
  inspect(name: string, space: Space = "lock"): Promise<LockView> {
    return this.#inspection.inspect(name, space);
  }

  /**
   * Lists all locks in use whose names begin with `prefix`.
   *
   * @example
   * for await (const { name, holders } of locks.list({ prefix: "invoice:" })) {
   *   console.log(name, holders.length);
   * }
   */
  list(options?: ListOptions): AsyncGenerator<LockView, void> {
    return this.#inspection.list(options);
  }

  /**
   * Finds circles of leases that currently wait for each other, because calls wait for a lock
   * inside a `run` of another lock. Locks taken by `acquire` are not seen, nor are waits in a store
   * without a queue (redlock). If several calls of another process take turns on one grant, only
   * the first is seen.
   *
   * @example
   * for (const { steps } of await locks.findDeadlocks()) {
   *   for (const { name, token, waitsFor } of steps) console.log(name, token, "->", waitsFor);
   * }
   */
  findDeadlocks(options?: Pick<ListOptions, "prefix">): Promise<Deadlock[]> {
    return this.#inspection.findDeadlocks(options);
  }

  /**
   * Ends the lease with this token, in any process. Returns false if it has already ended.
   *
   * @example
   * const [holder] = (await locks.inspect("deploy")).holders;
   * if (holder) await locks.revoke("deploy", { token: holder.token, reason: "stuck" });
   */
  revoke(name: string, options: RevokeOptions, space: Space = "lock"): Promise<boolean> {
    return this.#inspection.revoke(name, options, space);
  }

  /**
   * Takes over a lease that another process detached. Returns null if the lease has ended.
   *
   * @example
   * const resumed = await locks.resume(lease.detach());
   * if (resumed) await resumed.release();
   */
  async resume(handle: string, options?: AcquireOptions): Promise<Lease | null> {
    this.#client.assertOpen();
    const { traits } = this.#client.store;
    this.#demandTrait(traits.transferable, "transferable leases");
    return this.#client.resume(handle, resolveOptions(options, traits, this.#defaults));
  }

  /**
   * Returns the leases of this client, except detached ones.
   *
   * @example
   * for (const lease of locks.held()) console.log(lease.name, lease.remainingMs());
   */
  held(): Lease[] {
    return this.#client.held();
  }

  /**
   * Checks this deployment for problems: the store, its configuration and this process.
   *
   * @example
   * const { findings } = await locks.examine();
   * for (const { severity, what } of findings) if (severity === "danger") console.error(what);
   */
  async examine(options?: ExamineOptions): Promise<Examination> {
    // Imported on demand, because few programs need it.
    const { Doctor } = await import("./doctor.js");
    return new Doctor(this.#client, this.#defaults.ttlMs).examine(options);
  }

  /**
   * Ends all waits, releases all leases and stops all timers. Another call waits for the first one.
   */
  close(): Promise<void> {
    return this.#client.close();
  }

  /** Calls `close` at the end of an `await using` block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #lock(
    kind: LockKind,
    name: string,
    limit: number,
    defaults: AcquireOptions | undefined,
  ): StoreLock {
    checkName(name);
    const space = kind === "election" ? "election" : "lock";
    const mode = kind === "read" || kind === "semaphore" ? "shared" : "exclusive";
    const { traits, name: store } = this.#client.store;
    this.#demandTrait(traits.modes.includes(mode), mode === "shared" ? SHARED : EXCLUSIVE);
    const options =
      defaults === undefined
        ? this.#defaults
        : aboutLock(name, store, () => resolveOptions(defaults, traits, this.#defaults));
    return new StoreLock(this.#client, { kind, space, name, mode, weight: 1, limit }, options);
  }

  #demandTrait(isThere: boolean, what: string): void {
    if (isThere) return;
    const { name } = this.#client.store;
    const { exclusiveBecause } = this.#client.store.traits;
    const why = what === SHARED && exclusiveBecause ? `, because ${exclusiveBecause}` : "";
    throw new UnsupportedError(
      `The ${name} store has no ${what}${why}; ${COMPLETE_STORES} stores do.`,
      { store: name },
    );
  }
}
