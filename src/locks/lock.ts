import type { Busy } from "../contract/store.js";
import { present } from "../errors/assert.js";
import {
  AcquireTimeoutError,
  aboutLock,
  type BlockedBy,
  InvalidOptionError,
  invalidValue,
} from "../errors/index.js";
import type { Lease, LeaseResult } from "../lease/lease.js";
import type { LeaseClient } from "../lease/lease-client.js";
import type { Target } from "../lease/request-options.js";
import { type AcquireOptions, type Options, resolveOptions } from "../options/options.js";
import { withJson } from "../rules/json.js";
import { enclosingRuns, type Held, joinScope, runInScopes } from "./run-scopes.js";
import { runUnder } from "./run-under.js";
import { tracedRun } from "./traced-run.js";

/** The result of `tryRun`: the value of the body, or the holder that had the lock, if known. */
export type TryResult<T> =
  | { readonly ran: true; readonly value: T }
  | { readonly ran: false; readonly holder: BlockedBy | null };

/** Something that can be held. Every kind of lock has these three verbs. */
export interface Lock<L = Lease> {
  /** The name that was given; of several locks, their names joined by " + ". */
  readonly name: string;
  /**
   * Waits for the lock. Throws `AcquireTimeoutError` after `waitMs`, or the reason of `signal`. The
   * call ends 250 ms after `waitMs` at the latest, with a `StoreError` if the store did not answer.
   *
   * @example
   * const lease = await locks.mutex("invoice:42").acquire({ waitMs: 5_000 });
   * try {
   *   await save(lease.token);
   * } finally {
   *   await lease.release();
   * }
   */
  acquire(options?: AcquireOptions): Promise<L>;
  /**
   * Takes the lock if it is free at this moment, otherwise null. With `waitMs`, given here and not
   * as a default, it waits that long first. If the store does not answer within a second
   * (`storeTimeoutMs`), it throws `StoreError`.
   *
   * @example
   * const lease = await locks.mutex("cleanup").tryAcquire();
   * if (!lease) return; // another process is at it
   */
  tryAcquire(options?: AcquireOptions): Promise<L | null>;
  /**
   * Runs `body` under the lock if `tryAcquire` gets it. A loss and an error of `body` are thrown as
   * by `run`.
   *
   * @example
   * const result = await locks.mutex("cleanup").tryRun(() => cleanUp());
   * if (!result.ran) console.log("held by", result.holder?.meta);
   */
  tryRun<T>(body: (lease: L) => T | Promise<T>, options?: AcquireOptions): Promise<TryResult<T>>;
  /**
   * Whether a lock of this name is held at this moment, in any mode.
   *
   * @example
   * if (await locks.mutex("deploy").isHeld()) console.log("a deploy is under way");
   */
  isHeld(): Promise<boolean>;
  /**
   * Runs `body` under the lock and always waits for it to end. If the lease was lost before that,
   * throws `LeaseLostError` with the body's value as `value`, or its error as `cause`.
   *
   * @example
   * await locks.mutex("invoice:42").run(async (lease) => {
   *   const rates = await fetch("https://rates.example/today", { signal: lease.signal });
   *   lease.assertHeld();
   *   await save(await rates.json());
   * });
   */
  run<T>(body: (lease: L) => T | Promise<T>, options?: AcquireOptions): Promise<T>;
}

/** The result of a request: a new lease, the lease of the enclosing run, or neither. */
type Taken = LeaseResult | { readonly type: "joined"; readonly lease: Held["lease"] };

/** A lock that is one entry in a store: a mutex, one side of a read-write lock, a semaphore. */
export class StoreLock implements Lock {
  readonly #client: LeaseClient;
  readonly #target: Target;
  readonly #options: Options;

  constructor(client: LeaseClient, target: Target, options: Options) {
    this.#client = client;
    this.#target = target;
    this.#options = options;
    this.#targetFor(options);
  }

  get name(): string {
    return this.#target.name;
  }

  get client(): LeaseClient {
    return this.#client;
  }

  get target(): Target {
    return this.#target;
  }

  /** Returns the same lock with these defaults over its current ones. */
  with(defaults: AcquireOptions): StoreLock {
    return new StoreLock(this.#client, this.#target, this.#resolve(defaults));
  }

  /** The lease and the target of a `run` with these options. */
  holding(lease: Held["lease"], given: AcquireOptions): Held {
    const options = this.#resolve(given);
    return { target: this.#targetFor(options), lease, isReentrant: options.reentrant };
  }

  /** `isTry`: without a `waitMs` of the caller, `storeTimeoutMs` limits the call. */
  acquire(given?: AcquireOptions, isTry = false): Promise<Lease> {
    // Not an async function, whose frame would stay in memory while the call waits.
    try {
      const options = this.#resolve(given);
      const taken = this.#take(options, options.waitMs > 0, isTry);
      return taken.then((result) => this.#orThrow(options, result).lease);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async tryAcquire(given?: AcquireOptions): Promise<Lease | null> {
    const taken = await this.#try(this.#resolve(given), given);
    return taken.type === "busy" ? null : taken.lease;
  }

  run<T>(body: (lease: Lease) => T | Promise<T>, given?: AcquireOptions): Promise<T> {
    const target = (): Target => this.#targetFor(this.#resolve(given));
    return tracedRun(this.#client.store, target, body, (traced) => this.#run(traced, given));
  }

  tryRun<T>(body: (lease: Lease) => T | Promise<T>, given?: AcquireOptions): Promise<TryResult<T>> {
    const target = (): Target => this.#targetFor(this.#resolve(given));
    return tracedRun(this.#client.store, target, body, (traced) => this.#tryRun(traced, given));
  }

  async isHeld(): Promise<boolean> {
    const { space, name } = this.#target;
    const { store } = this.#client;
    const { holders } = await this.#client.look(() => store.inspect(space, name));
    return holders.length > 0;
  }

  async #run<T>(
    body: (lease: Lease) => T | Promise<T>,
    given: AcquireOptions | undefined,
  ): Promise<T> {
    const options = this.#resolveRun(body, given, "run(");
    const taken = this.#orThrow(options, await this.#take(options, options.waitMs > 0));
    return this.#runUnder(taken, options, body);
  }

  async #tryRun<T>(
    body: (lease: Lease) => T | Promise<T>,
    given: AcquireOptions | undefined,
  ): Promise<TryResult<T>> {
    const options = this.#resolveRun(body, given, "tryRun(");
    const taken = await this.#try(options, given);
    if (taken.type === "busy") return withJson({ ran: false, holder: taken.holder });
    return { ran: true, value: await this.#runUnder(taken, options, body) };
  }

  #resolve(given: AcquireOptions | undefined): Options {
    if (given === undefined) return this.#options;
    const { name, traits } = this.#client.store;
    return aboutLock(this.name, name, () => resolveOptions(given, traits, this.#options));
  }

  /** Checks the arguments of a call before anything is sent. */
  #resolveRun(body: unknown, given: AcquireOptions | undefined, call: string): Options {
    aboutLock(this.name, this.#client.store.name, () => checkBody(body, call));
    return this.#resolve(given);
  }

  /** Acquires without waiting, unless the call itself gives `waitMs`. Ignores its default. */
  #try(options: Options, given: AcquireOptions | undefined): Promise<Taken> {
    const waitMs = given?.waitMs;
    return this.#take(options, (waitMs ?? 0) > 0, waitMs === undefined);
  }

  #take(options: Options, mayWait: boolean, isTry = false): Promise<Taken> {
    const client = this.#client;
    const target = this.#targetFor(options);
    const joined = joinScope(client, target, options, mayWait);
    if (joined) return Promise.resolve({ type: "joined", lease: joined });
    const inside = mayWait ? enclosingRuns(client) : undefined;
    return client.request(target, inside ? { ...options, inside } : options, mayWait, isTry);
  }

  #orThrow(options: Options, taken: Taken): Exclude<Taken, Busy> {
    if (taken.type !== "busy") return taken;
    const { holder } = taken;
    const isOwn = holder !== null && this.#client.holds(this.name, holder.token);
    const context = { lockName: this.name, store: this.#client.store.name, isOwn };
    throw new AcquireTimeoutError(options.waitMs, holder, context);
  }

  #runUnder<T>(
    { type, lease }: Exclude<Taken, Busy>,
    options: Options,
    body: (lease: Lease) => T | Promise<T>,
  ): Promise<T> {
    if (type === "joined") return runUnder(lease, body);
    const held = [{ target: this.#targetFor(options), lease, isReentrant: options.reentrant }];
    return runInScopes(this.#client, held, ([part]) => present(part, "a run has its lease"), body);
  }

  /** The weight of a call is checked against the limit of the lock. */
  #targetFor({ weight }: Options): Target {
    const target = this.#target;
    if (weight === target.weight) return target;
    if (target.mode === "shared" && weight <= target.limit) return { ...target, weight };
    const rule =
      target.mode === "exclusive"
        ? "must be 1 for a lock that one holds alone"
        : `must be at most the limit of the semaphore (${target.limit})`;
    throw new InvalidOptionError("weight", weight, rule).about(this.name, this.#client.store.name);
  }
}

/** Checked before anything is acquired; `call` is how the call begins, up to its body. */
export function checkBody(body: unknown, call: string): void {
  if (typeof body === "function") return;
  const given = body === undefined ? body : `a value of type ${typeof body}`;
  const rule = `must be a function, the work, as in ${call}async (lease) => { … }, options)`;
  throw invalidValue("body", given, rule);
}
