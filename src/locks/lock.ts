import { AcquireTimeoutError, InvalidOptionError } from "../errors.js";
import type { Client, Outcome, Target } from "../lease/client.js";
import type { HeldLease, Lease } from "../lease/lease.js";
import { type AcquireOptions, type Options, resolveOptions } from "../options.js";
import { enclosingRuns, type Held, joinScope, runInScopes } from "./run-scopes.js";
import { runUnder } from "./run-under.js";

/** Something that can be held. Every kind of lock has these three verbs. */
export interface Lock<L = Lease> {
  readonly name: string;
  /** Waits for the lock. Throws `AcquireTimeoutError` after `waitMs`, or the reason of `signal`. */
  acquire(options?: AcquireOptions): Promise<L>;
  /** Takes the lock if it is free at this moment, else null. */
  tryAcquire(options?: AcquireOptions): Promise<L | null>;
  /**
   * Runs `body` under the lock and always waits for it. Throws `LeaseLostError` when the lease was
   * lost before `body` ended: with its `value`, or its error as `cause`.
   */
  run<T>(body: (lease: L) => T | Promise<T>, options?: AcquireOptions): Promise<T>;
}

/** A lock that is one entry in a store: a mutex, one side of a read-write lock, a semaphore. */
export class StoreLock implements Lock {
  readonly #client: Client;
  readonly #target: Target;
  readonly #options: Options;

  constructor(client: Client, target: Target, options: Options) {
    this.#client = client;
    this.#target = target;
    this.#options = options;
    this.#targetFor(options);
  }

  get name(): string {
    return this.#target.name;
  }

  get client(): Client {
    return this.#client;
  }

  /** The same lock with other defaults over its own. */
  with(defaults: AcquireOptions): StoreLock {
    return new StoreLock(this.#client, this.#target, this.#resolve(defaults));
  }

  /** What a `run` with these options holds. */
  holding(lease: Held["lease"], given: AcquireOptions): Held {
    const options = this.#resolve(given);
    return { target: this.#targetFor(options), lease, isReentrant: options.reentrant };
  }

  async acquire(given?: AcquireOptions): Promise<Lease> {
    const options = this.#resolve(given);
    const joined = joinScope(this.#client, this.#targetFor(options), options, options.waitMs > 0);
    return joined ?? this.#granted(options, await this.#begin(options, options.waitMs > 0));
  }

  async tryAcquire(given?: AcquireOptions): Promise<Lease | null> {
    const options = this.#resolve(given);
    const joined = joinScope(this.#client, this.#targetFor(options), options, false);
    if (joined) return joined;
    const outcome = await this.#begin(options, false);
    return outcome.type === "granted" ? outcome.lease : null;
  }

  async run<T>(body: (lease: Lease) => T | Promise<T>, given?: AcquireOptions): Promise<T> {
    const options = this.#resolve(given);
    const target = this.#targetFor(options);
    const joined = joinScope(this.#client, target, options, options.waitMs > 0);
    if (joined) return runUnder(joined, body);
    const lease = this.#granted(options, await this.#begin(options, options.waitMs > 0));
    const held = [{ target, lease, isReentrant: options.reentrant }];
    return runInScopes(this.#client, held, ([part]) => part as Held["lease"], body);
  }

  #resolve(given: AcquireOptions | undefined): Options {
    return resolveOptions(given, this.#client.store.traits, this.#options);
  }

  #begin(options: Options, mayWait: boolean): Promise<Outcome> {
    const inside = mayWait ? enclosingRuns(this.#client) : undefined;
    const asked = inside ? { ...options, inside } : options;
    return this.#client.request(this.#targetFor(options), asked, mayWait);
  }

  #granted(options: Options, outcome: Outcome): HeldLease {
    if (outcome.type === "granted") return outcome.lease;
    const context = { lockName: this.name, store: this.#client.store.name };
    throw new AcquireTimeoutError(options.waitMs, outcome.holder, context);
  }

  /** The weight of a call is checked against the limit of the lock. */
  #targetFor({ weight }: Options): Target {
    const target = this.#target;
    if (weight === target.weight) return target;
    if (target.mode === "exclusive") {
      throw new InvalidOptionError("weight", weight, "must be 1 for a lock that one holds alone");
    }
    if (weight > target.limit) {
      const rule = `must be at most the limit of the semaphore (${target.limit})`;
      throw new InvalidOptionError("weight", weight, rule);
    }
    return { ...target, weight };
  }
}
