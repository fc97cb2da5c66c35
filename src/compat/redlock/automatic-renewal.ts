/**
 * Extends a lock for as long as a routine runs, and tells the routine when the lock is lost: at its
 * deadline at the latest, whether a server answers or not.
 */
import { runtime } from "../client-quorum.js";
import { ExecutionError } from "./errors.js";
import type { Lock } from "./lock.js";

/** Aborts when the lock of a routine is lost. */
export type RedlockAbortSignal = AbortSignal & {
  /** Why the lock is lost. */
  error?: Error;
  /** The token of the lock, see `Lock`. */
  token?: bigint;
};

/** Extends a lock; no attempt begins when `isOver`. */
type Extend = (lock: Lock, isOver: () => boolean) => Promise<{ lock: Lock; deadlineMs: number }>;

const NEVER_EXTENDED = "The lock expired before an extension was answered.";

export class AutomaticRenewal {
  readonly signal: RedlockAbortSignal;
  readonly #controller = new AbortController();
  readonly #extend: Extend;
  readonly #thresholdMs: number;
  #lock: Lock;
  #deadlineMs: number;
  #due: { cancel(): void } | undefined;
  #end: { cancel(): void } | undefined;
  #isOver = false;
  #isAborted = false;

  constructor(lock: Lock, deadlineMs: number, thresholdMs: number, extend: Extend) {
    this.#lock = lock;
    this.#deadlineMs = deadlineMs;
    this.#thresholdMs = thresholdMs;
    this.#extend = extend;
    this.signal = this.#controller.signal;
    if (lock.token !== undefined) this.signal.token = lock.token;
    // After a blocked event loop no timer has run yet: the first look compares the clock.
    const isAborted = (): boolean => {
      this.#check();
      return this.#isAborted;
    };
    Object.defineProperty(this.signal, "aborted", { get: isAborted, configurable: true });
    this.#arm();
  }

  /**
   * The routine has ended: no further extension is sent. An extension under way is before the
   * release on the same connection, so it prolongs nothing that is released. Gives the lock to be
   * released.
   */
  stop(): Lock {
    this.#isOver = true;
    this.#due?.cancel();
    this.#end?.cancel();
    return this.#lock;
  }

  #arm(): void {
    const leftMs = this.#deadlineMs - runtime.clock.nowMs();
    this.#due?.cancel();
    this.#end?.cancel();
    const dueMs = Math.max(0, leftMs - this.#thresholdMs);
    this.#due = runtime.timers.after(dueMs, () => void this.#renew());
    this.#endAfter(leftMs);
  }

  /** A timer may run a little early: then it runs once more. */
  #endAfter(delayMs: number): void {
    this.#end = runtime.timers.after(delayMs, () => {
      if (!this.#check()) this.#endAfter(1);
    });
  }

  async #renew(): Promise<void> {
    if (this.#check()) return;
    try {
      const next = await this.#extend(this.#lock, () => this.#isOver);
      // A lock that was given up is not revived.
      if (this.#isOver) return;
      this.#lock = next.lock;
      this.#deadlineMs = next.deadlineMs;
      this.#arm();
    } catch (error) {
      this.#lose(error as Error);
    }
  }

  /** Ends it if its deadline has passed; true when it is over. */
  #check(): boolean {
    const isPast = runtime.clock.exactMs() >= this.#deadlineMs;
    if (isPast && !this.#isOver) this.#lose(new ExecutionError(NEVER_EXTENDED, []));
    return this.#isOver;
  }

  #lose(error: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#due?.cancel();
    this.#end?.cancel();
    this.#isAborted = true;
    this.signal.error = error;
    this.#controller.abort(error);
  }
}
