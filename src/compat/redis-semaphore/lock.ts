/**
 * The life of a mutex or of permits of redis-semaphore in this process.
 *
 * Why it is safe: this lock is acquired until its deadline, which counts from before the last
 * request that a majority did, and is before the expiry at the servers. `isAcquired` compares the
 * clock, so it is right in the first statement after a pause of the process. A refresh is never
 * sent after the deadline, and its script prolongs only keys and members that are still there:
 * nothing is revived. Every acquisition has another identifier: a release that reaches a server
 * late, on an old connection, deletes nothing of the next acquisition.
 */

import { TimeLimitError } from "../../time/timers.js";
import { type Answers, runtime } from "../client-quorum.js";
import { driftOf } from "../key-lock.js";
import type { ScriptClient } from "../script-client.js";
import { LostLockError, TimeoutError } from "./errors.js";
import { Holding, type Layout } from "./holding.js";
import { type LockOptions, type LockRules, rulesOf } from "./options.js";

const DRIFT_FACTOR = 0.01;
const GIVE_LIMIT_MS = 5_000;
/** A refresh without an answer is repeated after this part of the time that is left. */
const RETRY_PART = 4;
const MIN_RETRY_MS = 20;

/** A mutex, or permits of a semaphore. */
export abstract class Lock {
  readonly #kind: string;
  readonly #rules: LockRules;
  readonly #holding: Holding;
  #isExternal: boolean;
  /** The present identifier has been held, or given back: late requests with it may arrive. */
  #isUsed = false;
  /** An attempt with the present identifier was not answered: its requests may still arrive. */
  #mayStillArrive = false;
  /** It was acquired, and neither lost nor released. */
  #isHeld = false;
  #deadlineMs = Number.NEGATIVE_INFINITY;
  #token: bigint | undefined;
  #refreshTimer: { cancel(): void } | undefined;
  #endTimer: { cancel(): void } | undefined;
  #isRefreshing = false;
  /** Requests that take or give are sent one after the other. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(
    kind: string,
    clients: readonly ScriptClient[],
    layout: Layout,
    options: LockOptions | undefined,
  ) {
    const rules = rulesOf(options);
    this.#kind = kind;
    this.#rules = rules;
    this.#isExternal = rules.acquiredExternally;
    this.#holding = new Holding(clients, layout, rules.identifier, rules.lockTimeout);
  }

  /**
   * The value at the key, or the member of the set: that of the last acquisition, or of the next
   * one. Each acquisition has another one, unless the option `identifier` chose it.
   */
  get identifier(): string {
    return this.#holding.identifier;
  }

  /** Whether it is held at this moment, by the clock. */
  get isAcquired(): boolean {
    return this.#isHeld && runtime.clock.exactMs() < this.#deadlineMs;
  }

  /**
   * Rises from one holder to the next, for a fence: the time of the server when a mutex was last
   * acquired, in microseconds. Undefined with several servers, for permits, and if it was acquired
   * elsewhere.
   */
  get token(): bigint | undefined {
    return this.#token;
  }

  /** Acquires it, or throws `TimeoutError`. Throws the reason of the signal when it aborts. */
  async acquire(abortSignal?: AbortSignal): Promise<void> {
    if (await this.tryAcquire(abortSignal)) return;
    throw new TimeoutError(`Acquire ${this.#kind} ${this.#holding.layout.key} timeout`);
  }

  /** True when it was acquired within `acquireTimeout` and `acquireAttemptsLimit`. */
  async tryAcquire(abortSignal?: AbortSignal): Promise<boolean> {
    if (this.#isExternal) return await this.#inTurn(() => this.#takeOver());
    const { acquireTimeout, acquireAttemptsLimit, retryInterval } = this.#rules;
    const endMs = runtime.clock.nowMs() + acquireTimeout;
    for (let attempt = 1; attempt <= acquireAttemptsLimit; attempt += 1) {
      abortSignal?.throwIfAborted();
      const leftMs = endMs - runtime.clock.nowMs();
      if (leftMs <= 0) break;
      if (await this.#inTurn(() => this.#take(leftMs))) return true;
      if (attempt < acquireAttemptsLimit) await pauseUnlessAborted(retryInterval, abortSignal);
    }
    return false;
  }

  /** Gives it back; has no effect when it is not held any more. */
  async release(): Promise<void> {
    this.stopRefresh();
    this.#deadlineMs = Number.NEGATIVE_INFINITY;
    await this.#inTurn(async () => {
      if (!this.#isHeld && !this.#isExternal) return;
      // An acquisition in the turn before this one has started the timers again.
      this.stopRefresh();
      this.#deadlineMs = Number.NEGATIVE_INFINITY;
      const answers = await this.#holding.give(GIVE_LIMIT_MS);
      // One server that failed is told; of several, those that fail let it expire.
      if (!answers.isCarried) await this.#throwOfOne(answers);
      this.#isHeld = false;
      this.#isExternal = false;
    });
  }

  /** Refreshes no more: it expires after `lockTimeout`, and no loss is told. */
  stopRefresh(): void {
    this.#isRefreshing = false;
    this.#refreshTimer?.cancel();
    this.#endTimer?.cancel();
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }

  async #take(leftMs: number): Promise<boolean> {
    // One lock of this process is one holder, however many callers use it.
    if (this.isAcquired) return false;
    if (this.#isUsed) this.#renewIdentifier();
    const answers = await this.#holding.take(Math.min(leftMs, this.#reliableMs), false);
    if (answers.isCarried && this.#hold(answers)) return true;
    // Behind the request on the same connection: it leaves nothing of this attempt.
    if (answers.isCarried || answers.doubtful.size > 0 || this.#holding.size > 1) {
      this.#isUsed = true;
      this.#mayStillArrive = answers.doubtful.size > 0;
      void this.#holding.give(GIVE_LIMIT_MS);
    }
    if (answers.doubtful.size > 0 && !(await isLate(answers))) await this.#throwOfOne(answers);
    return false;
  }

  /** Gives back again what an attempt without an answer may have left: it is in the way. */
  #renewIdentifier(): void {
    if (this.#mayStillArrive) void this.#holding.give(GIVE_LIMIT_MS);
    this.#holding.identifier = this.#rules.nextIdentifier();
    this.#isUsed = false;
    this.#mayStillArrive = false;
  }

  async #takeOver(): Promise<boolean> {
    const answers = await this.#holding.refresh(this.#reliableMs, true);
    if (answers.isCarried && this.#hold(answers)) {
      this.#isExternal = false;
      return true;
    }
    if (!answers.isRefused) await this.#throwOfOne(answers);
    return false;
  }

  /** For how long a request proves anything, from its sending on. */
  get #reliableMs(): number {
    const { lockTimeout } = this.#rules;
    return Math.max(1, lockTimeout - driftOf(lockTimeout, DRIFT_FACTOR));
  }

  /** False where the answer came too late to be relied on. */
  #hold({ sentMs, token }: Answers<ScriptClient>): boolean {
    const deadlineMs = sentMs + this.#reliableMs;
    if (runtime.clock.exactMs() >= deadlineMs) return false;
    this.#isHeld = true;
    this.#isUsed = true;
    this.#token = token;
    this.#deadlineMs = deadlineMs;
    const { refreshInterval } = this.#rules;
    if (refreshInterval > 0) {
      this.#isRefreshing = true;
      this.#arm(refreshInterval);
    }
    return true;
  }

  #arm(delayMs: number): void {
    this.#refreshTimer?.cancel();
    this.#endTimer?.cancel();
    this.#refreshTimer = runtime.timers.after(delayMs, () => void this.#refresh());
    this.#endAfter(this.#deadlineMs - runtime.clock.nowMs());
  }

  /** A timer may run a little early: then it runs once more. */
  #endAfter(delayMs: number): void {
    this.#endTimer = runtime.timers.after(delayMs, () => {
      if (this.#check()) this.#endAfter(1);
    });
  }

  async #refresh(): Promise<void> {
    if (!this.#check()) return;
    const leftMs = this.#deadlineMs - runtime.clock.nowMs();
    const { identifier } = this;
    const answers = await this.#holding.refresh(leftMs, false);
    // The answer may be about an acquisition that was released meanwhile.
    if (!this.#isHeld || !this.#isRefreshing || identifier !== this.identifier) return;
    const { refreshInterval, lockTimeout } = this.#rules;
    if (answers.isCarried) {
      this.#deadlineMs = Math.max(this.#deadlineMs, answers.sentMs + this.#reliableMs);
      this.#arm(refreshInterval);
      if (this.#holding.size > 1) {
        void this.#holding.repair(answers, lockTimeout, () => this.isAcquired);
      }
      return;
    }
    if (answers.isRefused) return this.#lose();
    if (!this.#check()) return;
    const restMs = this.#deadlineMs - runtime.clock.nowMs();
    this.#arm(Math.min(refreshInterval, Math.max(MIN_RETRY_MS, restMs / RETRY_PART)));
  }

  /** Ends it if its deadline has passed; true while it is held. */
  #check(): boolean {
    const isOver =
      this.#isHeld && this.#isRefreshing && runtime.clock.exactMs() >= this.#deadlineMs;
    if (isOver) this.#lose();
    return this.#isHeld && this.#isRefreshing;
  }

  #lose(): void {
    this.stopRefresh();
    this.#isHeld = false;
    this.#deadlineMs = Number.NEGATIVE_INFINITY;
    if (this.#holding.size > 1) void this.#holding.give(GIVE_LIMIT_MS);
    const error = new LostLockError(`Lost ${this.#kind} for key ${this.#holding.layout.key}`);
    try {
      this.#rules.onLockLost.call(this, error);
    } catch (cause) {
      // An error of the callback is told as redis-semaphore tells it.
      void Promise.reject(cause);
    }
  }

  /** Throws the error of the only server. */
  async #throwOfOne({ votes }: Answers<ScriptClient>): Promise<void> {
    if (this.#holding.size > 1) return;
    for (const error of (await votes).votesAgainst.values()) throw error;
  }
}

/** Whether the only server did not answer in time. */
async function isLate({ votes }: Answers<ScriptClient>): Promise<boolean> {
  const [error] = (await votes).votesAgainst.values();
  return error instanceof TimeLimitError;
}

/** Resolves after `delayMs`. Rejects with the reason of the signal when it aborts. */
function pauseUnlessAborted(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      timer.cancel();
      reject(signal?.reason);
    };
    const timer = runtime.timers.after(
      delayMs,
      () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      },
      true,
    );
    if (signal?.aborted) onAbort();
    else signal?.addEventListener("abort", onAbort, { once: true });
  });
}
