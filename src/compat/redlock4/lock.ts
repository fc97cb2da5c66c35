import type { Redlock } from "./redlock.js";

/** Called with null and the result, or with an error and no result. */
export type Callback<Result = void> = (error: Error | null, result: Result) => void;

/** Resources that are locked until `expiration`, unless they are unlocked or extended. */
export class Lock {
  /** The instance that acquired it. */
  redlock: Redlock;
  /** The keys. */
  resource: string[];
  /** The random value at the keys. */
  value: string | null;
  /** Until then, by the wall clock, it can be relied on; 0 once it is unlocked. */
  expiration: number;
  /** How many attempts it took. */
  attempts: number;
  /** How many attempts were left. */
  attemptsRemaining: number;
  // Not enumerable: JSON has no bigint.
  readonly #token: bigint | undefined;

  constructor(
    redlock: Redlock,
    resource: string[],
    value: string | null,
    expiration: number,
    attempts: number,
    attemptsRemaining: number,
    token?: bigint,
  ) {
    this.redlock = redlock;
    this.resource = resource;
    this.value = value;
    this.expiration = expiration;
    this.attempts = attempts;
    this.attemptsRemaining = attemptsRemaining;
    this.#token = token;
  }

  /**
   * Rises from one lock to the next, for a fence: the time of the server when the lock was taken,
   * in microseconds. Undefined with several servers.
   */
  get token(): bigint | undefined {
    return this.#token;
  }

  /** Unlocks the resources. */
  unlock(callback?: Callback): Promise<void> {
    return this.redlock.unlock(this, callback);
  }

  /** Extends it by this many milliseconds from now on; gives the same object. */
  extend(ttl: number, callback?: Callback<Lock>): Promise<Lock> {
    return this.redlock.extend(this, ttl, callback);
  }
}

/** Resources could not be locked, extended or unlocked. */
export class LockError extends Error {
  /** How many attempts were made, where it was an acquisition or an extension. */
  attempts: number | undefined;

  constructor(message = "Failed to lock the resource.", attempts?: number) {
    super(message);
    this.name = "LockError";
    this.attempts = attempts;
  }
}
