import { EventEmitter } from "node:events";
import { EXTEND, GIVE, TAKE } from "../../stores/redis-client/plain-keys.js";
import { runtime } from "../client-quorum.js";
import { type HeldKeys, KeyLock, momentAt, NoMajorityError } from "../key-lock.js";
import { AutomaticRenewal, type RedlockAbortSignal } from "./automatic-renewal.js";
import { ExecutionError, ResourceLockedError } from "./errors.js";
import { type Client, type ExecutionResult, Lock } from "./lock.js";
import { checkDuration, type Settings, settingsOver } from "./settings.js";

/** Scripts of one's own, which redlock accepts and this class refuses. */
interface CustomScripts {
  /** Refused. */
  readonly acquireScript?: string | ((script: string) => string);
  /** Refused. */
  readonly extendScript?: string | ((script: string) => string);
  /** Refused. */
  readonly releaseScript?: string | ((script: string) => string);
}

const NO_QUORUM = "The operation was unable to achieve a quorum during its retry window.";
const ALREADY_EXPIRED = "Cannot extend an already-expired lock.";

/** When the deadline of a lock is, by a clock that does not jump. */
const deadlines = new WeakMap<Lock, number>();

/**
 * Locks on one or more Redis servers, with the API of `redlock` 5. Emits `error` for every server
 * that did not do what it was asked, with a `ResourceLockedError` where the resource is locked.
 *
 * @example
 * import Redlock from "holdfast/compat/redlock";
 * import { Redis } from "ioredis";
 *
 * const redlock = new Redlock([new Redis()], { retryCount: 10 });
 * await redlock.using(["invoice:42"], 5000, async (signal) => {
 *   await save("charged");
 *   if (signal.aborted) throw signal.error;
 * });
 */
export class Redlock extends EventEmitter {
  /** One client for each independent server or Cluster. */
  readonly clients: Set<Client>;
  /** The settings of this instance. */
  readonly settings: Settings;
  /** The scripts that run on the servers, to read only. */
  readonly scripts: {
    /** Takes all resources, or none. */
    readonly acquireScript: { value: string; hash: string };
    /** Prolongs the resources that hold a value. */
    readonly extendScript: { value: string; hash: string };
    /** Deletes the resources that hold a value. */
    readonly releaseScript: { value: string; hash: string };
  } = { acquireScript: { ...TAKE }, extendScript: { ...EXTEND }, releaseScript: { ...GIVE } };
  readonly #keyLock: KeyLock<Client>;

  /** Throws without a client, with a client that cannot run scripts, and with custom scripts. */
  constructor(
    clients: Iterable<Client>,
    settings: Partial<Settings> = {},
    scripts: CustomScripts = {},
  ) {
    super();
    refuseScripts(scripts);
    // Contention is an `error` event, too: without a listener it must not end the program.
    this.on("error", () => {});
    this.#keyLock = new KeyLock(clients, refusal, (error) => this.emit("error", error));
    this.clients = this.#keyLock.quorum.clients;
    if (this.clients.size === 0) {
      throw new Error("Redlock must be instantiated with at least one redis client.");
    }
    this.settings = settingsOver(settings);
  }

  /** Ends all clients by their `quit`. */
  async quit(): Promise<void> {
    const asked = [...this.clients].map((client) => (client as { quit?(): unknown }).quit?.());
    await Promise.all(asked);
  }

  /** Locks all resources, or none. Throws `ExecutionError` after the last attempt. */
  async acquire(
    resources: string[],
    duration: number,
    settings?: Partial<Settings>,
  ): Promise<Lock> {
    checkDuration(duration);
    const rules = settingsOver(settings, this.settings);
    return this.#lockOf(await orExecutionError(this.#keyLock.acquire(resources, duration, rules)));
  }

  /**
   * Releases a lock. Throws `ExecutionError` when a majority of the servers did not have it any
   * more, or did not answer: then it expires by itself.
   */
  async release(lock: Lock, settings?: Partial<Settings>): Promise<ExecutionResult> {
    lock.expiration = 0;
    const rules = settingsOver(settings, this.settings);
    const { resources, value } = lock;
    return { attempts: await orExecutionError(this.#keyLock.release(resources, value, rules)) };
  }

  /** Extends a lock that has not expired; the lock that this gives replaces it. */
  async extend(existing: Lock, duration: number, settings?: Partial<Settings>): Promise<Lock> {
    return this.#extend(existing, duration, settings);
  }

  /** As the other form, with settings for this call. */
  async using<T>(
    resources: string[],
    duration: number,
    settings: Partial<Settings>,
    routine?: (signal: RedlockAbortSignal) => Promise<T>,
  ): Promise<T>;
  /**
   * Runs a routine under a lock that is extended until the routine ends, and gives the value of the
   * routine. The signal aborts when the lock is lost, at its expiration at the latest.
   */
  async using<T>(
    resources: string[],
    duration: number,
    routine: (signal: RedlockAbortSignal) => Promise<T>,
  ): Promise<T>;
  async using<T>(
    resources: string[],
    duration: number,
    settingsOrRoutine: Partial<Settings> | ((signal: RedlockAbortSignal) => Promise<T>),
    optionalRoutine?: (signal: RedlockAbortSignal) => Promise<T>,
  ): Promise<T> {
    checkDuration(duration);
    const given = typeof settingsOrRoutine === "function" ? {} : settingsOrRoutine;
    const settings = settingsOver(given, this.settings);
    const routine = optionalRoutine ?? settingsOrRoutine;
    if (typeof routine !== "function") throw new Error("INVARIANT: routine is not a function.");
    const { automaticExtensionThreshold: thresholdMs } = settings;
    if (thresholdMs > duration - 100) {
      throw new Error(
        "A lock `duration` must be at least 100ms greater than the " +
          "`automaticExtensionThreshold` setting.",
      );
    }
    const lock = await this.acquire(resources, duration, settings);
    // It tries until the deadline of the lock.
    const untilDeadline = { ...settings, retryCount: -1 };
    const extend = async (held: Lock, isOver: () => boolean) => {
      const next = await this.#extend(held, duration, untilDeadline, isOver);
      return { lock: next, deadlineMs: deadlineOf(next) };
    };
    const renewal = new AutomaticRenewal(lock, deadlineOf(lock), thresholdMs, extend);
    try {
      return await routine(renewal.signal);
    } finally {
      // The value of the routine counts. A release that fails is an `error` event, and the lock
      // expires by itself.
      await this.release(renewal.stop(), { ...settings, retryCount: 0 }).catch(() => {});
    }
  }

  async #extend(
    existing: Lock,
    duration: number,
    settings?: Partial<Settings>,
    isOver?: () => boolean,
  ): Promise<Lock> {
    checkDuration(duration);
    const deadlineMs = deadlineOf(existing);
    if (deadlineMs <= runtime.clock.exactMs()) throw new ExecutionError(ALREADY_EXPIRED, []);
    const { resources: keys, value, expiration } = existing;
    const held = { keys, value, expiration, deadlineMs };
    const rules = settingsOver(settings, this.settings);
    const extended = this.#keyLock.extend(held, duration, rules, isOver);
    const next = this.#lockOf({ ...(await orExecutionError(extended)), token: existing.token });
    existing.expiration = 0;
    return next;
  }

  #lockOf({ keys, value, deadlineMs, expiration, attempts, token }: HeldKeys<Client>): Lock {
    const lock = new Lock(this, [...keys], value, attempts, expiration, token);
    deadlines.set(lock, deadlineMs);
    return lock;
  }
}

/** A lock may come from another process, with nothing but its expiration. */
function deadlineOf(lock: Lock): number {
  const byWall = momentAt(lock.expiration);
  return Math.min(deadlines.get(lock) ?? byWall, byWall);
}

function refusal(count: number, keys: readonly string[]): Error {
  return new ResourceLockedError(
    `The operation was applied to: ${count} of the ${keys.length} requested resources.`,
  );
}

async function orExecutionError<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof NoMajorityError)) throw error;
    throw new ExecutionError(NO_QUORUM, error.attempts);
  }
}

function refuseScripts(scripts: CustomScripts): void {
  const given = Object.entries(scripts).find(([, script]) => script !== undefined);
  if (given === undefined) return;
  throw new Error(
    `holdfast/compat/redlock cannot run a custom ${given[0]}: its deadlines rest on its own ` +
      "scripts. Leave the scripts out, or stay with the package redlock for this instance.",
  );
}
