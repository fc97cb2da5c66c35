import { EventEmitter } from "node:events";
import { createRequire } from "node:module";
import { runtime } from "../client-quorum.js";
import {
  type AttemptRules,
  type HeldKeys,
  KeyLock,
  momentAt,
  NoMajorityError,
} from "../key-lock.js";
import type { ScriptClient } from "../script-client.js";
import { type Callback, Lock, LockError } from "./lock.js";

/** A resource that `using` of bluebird gives back; opaque to all others. */
export interface Disposer<Resource> {
  /** Never there: it tells the compiler what kind of resource it is. */
  readonly resourceOf?: Resource;
}

/** How often to try, and for how long to believe. */
export interface Options {
  /** The part of a ttl by which clocks may run apart. Default 0.01. */
  driftFactor?: number;
  /** How many attempts follow the first; -1 for no end. Default 10. */
  retryCount?: number;
  /** The time between two attempts, in milliseconds. Default 200. */
  retryDelay?: number;
  /** At most this much, at random, is added to or taken from that time. Default 100. */
  retryJitter?: number;
  /** Refused: the deadlines rest on the scripts of this class. */
  lockScript?: (script: string) => string;
  /** Refused. */
  unlockScript?: (script: string) => string;
  /** Refused. */
  extendScript?: (script: string) => string;
}

/** The options of one call. */
export interface LockOptions {
  /** How many attempts follow the first; -1 for no end. */
  retryCount?: number;
  /** The time between two attempts, in milliseconds. */
  retryDelay?: number;
}

const CUSTOM_SCRIPTS = ["lockScript", "unlockScript", "extendScript"] as const;
const UNTIL_ANSWERED = { driftFactor: 0, retryCount: 0, retryDelay: 0, retryJitter: 0 };

/** When the deadline of a lock is, by a clock that does not jump. */
const deadlines = new WeakMap<Lock, number>();

/**
 * Locks on one or more Redis servers, with the API of `redlock` 4. Emits `clientError` for a server
 * that failed. Methods take a callback, and give a promise.
 *
 * @example
 * import Redlock from "holdfast/compat/redlock4";
 * import { Redis } from "ioredis";
 *
 * const redlock = new Redlock([new Redis()], { retryCount: 10 });
 * const lock = await redlock.lock("invoice:42", 1000);
 * await lock.unlock();
 */
export class Redlock extends EventEmitter {
  /** The class of locks, for `instanceof`. */
  static readonly Lock: typeof Lock = Lock;
  /** The class of errors, for `instanceof`. */
  static readonly LockError: typeof LockError = LockError;

  /** See `Options`. */
  readonly driftFactor: number;
  /** See `Options`. */
  readonly retryCount: number;
  /** See `Options`. */
  readonly retryDelay: number;
  /** See `Options`. */
  readonly retryJitter: number;
  /** One client for each independent server or Cluster. */
  readonly servers: ScriptClient[];
  readonly #keyLock: KeyLock<ScriptClient>;

  /** Throws without a client, with a client that cannot run scripts, and with custom scripts. */
  constructor(clients: ScriptClient[], options: Options = {}) {
    super();
    const custom = CUSTOM_SCRIPTS.find((name) => options[name] !== undefined);
    if (custom !== undefined) {
      throw new Error(
        `holdfast/compat/redlock4 cannot run a custom ${custom}: its deadlines rest on its own ` +
          "scripts. Leave the option out, or stay with the package redlock for this instance.",
      );
    }
    this.driftFactor = numberOr(options.driftFactor, 0.01);
    this.retryCount = numberOr(options.retryCount, 10);
    this.retryDelay = numberOr(options.retryDelay, 200);
    this.retryJitter = numberOr(options.retryJitter, 100);
    this.servers = clients;
    if (clients.length === 0) {
      throw new Error("Redlock must be instantiated with at least one redis server.");
    }
    this.#keyLock = new KeyLock(clients, refusal, (error, isRefusal) => {
      if (!isRefusal) this.emit("clientError", error);
    });
  }

  /** Ends all clients by their `quit`, and gives their answers. */
  quit(callback?: Callback<unknown[]>): Promise<unknown[]> {
    const quit = async (client: ScriptClient): Promise<unknown> =>
      (client as { quit?(): unknown }).quit?.();
    return told(Promise.all(this.servers.map(quit)), callback);
  }

  /** Locks all resources, or none. Throws `LockError` after the last attempt. */
  lock(resource: string | string[], ttl: number, callback?: Callback<Lock>): Promise<Lock> {
    return told(this.#lock(resource, ttl, {}), callback);
  }

  /** The same as `lock`. */
  acquire(resource: string | string[], ttl: number, callback?: Callback<Lock>): Promise<Lock> {
    return this.lock(resource, ttl, callback);
  }

  /** As `lock`, with options for this call. */
  lockWithOptions(
    resource: string | string[],
    ttl: number,
    options: LockOptions,
    callback?: Callback<Lock>,
  ): Promise<Lock> {
    return told(this.#lock(resource, ttl, options), callback);
  }

  /** The same as `lockWithOptions`. */
  acquireWithOptions(
    resource: string | string[],
    ttl: number,
    options: LockOptions,
    callback?: Callback<Lock>,
  ): Promise<Lock> {
    return this.lockWithOptions(resource, ttl, options, callback);
  }

  /** A lock for `using` of the package bluebird, which has to be installed. */
  disposer(
    resource: string | string[],
    ttl: number,
    errorHandler: (error: Error) => void = () => {},
  ): Disposer<Lock> {
    return disposerOf(
      () => this.#lock(resource, ttl, {}),
      (lock) => this.#unlock(lock).catch(errorHandler),
    );
  }

  /**
   * Unlocks the resources. Throws `LockError` when a majority of the servers did not have the lock
   * any more, or did not answer: then it expires by itself.
   */
  unlock(lock: Lock, callback?: Callback): Promise<void> {
    return told(this.#unlock(lock), callback);
  }

  /** The same as `unlock`. */
  release(lock: Lock, callback?: Callback): Promise<void> {
    return this.unlock(lock, callback);
  }

  /** Extends a lock that has not expired; gives the same object. */
  extend(lock: Lock, ttl: number, callback?: Callback<Lock>): Promise<Lock> {
    return told(this.#extend(lock, ttl), callback);
  }

  async #lock(given: string | string[], ttl: number, options: LockOptions): Promise<Lock> {
    const resource = Array.isArray(given) ? given : [given];
    const rules = this.#rules(options);
    try {
      const held = await this.#keyLock.acquire(resource, ttl, rules);
      const attempts = held.attempts.length;
      const lock = new Lock(
        this,
        resource,
        held.value,
        held.expiration,
        attempts,
        rules.retryCount - attempts,
        held.token,
      );
      deadlines.set(lock, held.deadlineMs);
      return lock;
    } catch (error) {
      throw this.#exceeded(error, resource, rules);
    }
  }

  async #unlock(lock: Lock): Promise<void> {
    lock.expiration = 0;
    try {
      const { resource, value } = lock;
      await this.#keyLock.release([resource].flat(), value ?? "", UNTIL_ANSWERED);
    } catch (error) {
      if (!(error instanceof NoMajorityError)) throw error;
      throw new LockError(`Unable to fully release the lock on resource "${lock.resource}".`);
    }
  }

  async #extend(lock: Lock, ttl: number): Promise<Lock> {
    const { resource, value, expiration } = lock;
    const byWall = momentAt(expiration);
    const deadlineMs = Math.min(deadlines.get(lock) ?? byWall, byWall);
    if (deadlineMs <= runtime.clock.exactMs()) {
      const why = "because the lock has already expired.";
      throw new LockError(`Cannot extend lock on resource "${resource}" ${why}`, 0);
    }
    const held = { keys: [resource].flat(), value: value ?? "", expiration, deadlineMs };
    const rules = this.#rules({});
    let next: HeldKeys<ScriptClient>;
    try {
      next = await this.#keyLock.extend(held, ttl, rules);
    } catch (error) {
      throw this.#exceeded(error, held.keys, rules);
    }
    lock.expiration = next.expiration;
    deadlines.set(lock, next.deadlineMs);
    return lock;
  }

  #rules(options: LockOptions): AttemptRules {
    return {
      driftFactor: this.driftFactor,
      retryCount: numberOr(options.retryCount, this.retryCount),
      retryDelay: numberOr(options.retryDelay, this.retryDelay),
      retryJitter: this.retryJitter,
    };
  }

  #exceeded(error: unknown, resource: readonly string[], { retryCount }: AttemptRules): unknown {
    if (!(error instanceof NoMajorityError)) return error;
    const message = `Exceeded ${retryCount} attempts to lock the resource "${resource}".`;
    return new LockError(message, error.attempts.length);
  }
}

function numberOr(value: unknown, other: number): number {
  return typeof value === "number" ? value : other;
}

function refusal(count: number, keys: readonly string[]): Error {
  return new LockError(`A server did it for ${count} of ${keys.length} resources.`);
}

/** Tells a callback, too. Then the promise counts as heard, also when it rejects. */
function told<Result>(work: Promise<Result>, callback?: Callback<Result>): Promise<Result> {
  if (callback) {
    // A callback that throws ends the program, as it does without promises.
    const call = (...answer: Parameters<Callback<Result>>): void =>
      runtime.timers.soon(() => callback(...answer));
    work.then(
      (result) => call(null, result),
      (error: Error) => call(error, undefined as Result),
    );
  }
  return work;
}

interface Bluebird {
  resolve<T>(value: Promise<T>): {
    disposer(giveBack: (resource: T) => Promise<unknown>): Disposer<T>;
  };
}

/** Throws unless `bluebird` is installed: only its `using` takes a disposer. */
function disposerOf<T>(
  resource: () => Promise<T>,
  giveBack: (resource: T) => Promise<unknown>,
): Disposer<T> {
  return bluebird().resolve(resource()).disposer(giveBack);
}

function bluebird(): Bluebird {
  try {
    return createRequire(import.meta.url)("bluebird") as Bluebird;
  } catch (cause) {
    const advice =
      "disposer() needs the package bluebird, whose using() takes what it gives: " +
      "npm install bluebird, or lock() and unlock() in a try and finally.";
    throw new Error(advice, { cause });
  }
}
