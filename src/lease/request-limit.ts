import type { Busy, Store } from "../contract/store.js";
import { StoreError } from "../errors/index.js";
import type { Limited, Limits } from "../time/limits.js";
import type { AcquireWait } from "./acquire-wait.js";
import { explain } from "./explain.js";
import type { LeaseRequest } from "./lease-request.js";

/** Longest time between the end of the wait and the end of the call, whatever the store does. */
export const GRACE_MS = 250;
/** The end of that time, in which the store's own failure may still arrive. */
const LAST_MS = 25;
/** How long the last request may take, which finds out whether the lock is held. */
export const LAST_TRY_MS: number = GRACE_MS - LAST_MS;

/**
 * The limit passes in steps. A blocked event loop uses up one step however long it lasts, because
 * the store may have answered meanwhile.
 */
const STEPS = 5;
/** With this many steps left, the store starts to search for the reason of its silence. */
const STEPS_TO_EXPLAIN = 2;

/**
 * Ends one call in time. A grant that arrives later is released. The store continues to withdraw
 * the owner, so mutual exclusion does not depend on this class.
 */
export class RequestLimit implements Limited {
  readonly #request: LeaseRequest;
  readonly #store: Store;
  readonly #limits: Limits;
  readonly #startMs: number;
  readonly #stepMs: number;
  #stepsLeft = STEPS;
  /** The failure of the request, while the store searches for the reason. */
  failure: unknown;
  /** The timeout error with the reason, once the store has found it. */
  #explained: StoreError | null = null;
  dueMs: number;
  heapIndex = -1;

  /** The request may take `patienceMs`, measured from now or from the end of its wait. */
  constructor(request: LeaseRequest, store: Store, limits: Limits, patienceMs: number) {
    const { wait } = request;
    const nowMs = store.runtime.clock.nowMs();
    this.#request = request;
    this.#store = store;
    this.#limits = limits;
    this.#startMs = wait ? wait.startMs : nowMs;
    this.#stepMs = Math.max(0, patienceMs - LAST_MS) / STEPS;
    this.dueMs = wait ? Math.min(wait.untilMs, nowMs) : nowMs;
    this.#plan(this.#stepMs);
  }

  /** The call has ended. */
  end(): void {
    this.#limits.remove(this);
  }

  onDue(): void {
    // rule: call-ends-in-time
    if (this.#stepsLeft === 0) return this.#conclude();
    this.#stepsLeft -= 1;
    if (this.#stepsLeft === STEPS_TO_EXPLAIN) this.#explain();
    this.#plan(this.#stepsLeft === 0 ? LAST_MS : this.#stepMs);
  }

  /** A slightly late timer does not move the next step; a blocked event loop does. */
  #plan(delayMs: number): void {
    const nowMs = this.#store.runtime.clock.nowMs();
    const lateMs = nowMs - this.dueMs;
    const isOnTime = lateMs >= 0 && lateMs < LAST_MS;
    this.dueMs = (isOnTime ? this.dueMs : nowMs) + delayMs;
    this.#limits.add(this);
  }

  #explain(): void {
    const error = this.#error();
    void explain(this.#store, error).then((explained) => {
      if (explained !== error) this.#explained = explained;
    });
  }

  #conclude(): void {
    const request = this.#request;
    const { wait, options, target } = request;
    // The requests behind this one ask the store themselves.
    if (request.lease === null) request.leave();
    if (options.signal?.aborted) return request.reject(options.signal.reason);
    if (wait?.hasRecentReport) return this.#resolveBusy(wait);
    const error = this.#explained ?? this.failure ?? this.#error();
    request.reject(
      error instanceof StoreError ? error.about(target.name, this.#store.name) : error,
    );
  }

  #resolveBusy({ holder, grantsInMs }: AcquireWait): void {
    const busy: Busy = { type: "busy", holder, mark: null, grantsInMs };
    try {
      this.#request.resolve(this.#request.told(busy));
    } catch (error) {
      this.#request.reject(error);
    }
  }

  #error(): StoreError {
    return unansweredError(this.#store.runtime.clock.nowMs() - this.#startMs);
  }
}

/** The error of a call that does not know whether the lock is held. */
export function unansweredError(silentMs: number): StoreError {
  const message = `The store did not answer within ${Math.round(silentMs)} ms.`;
  return new StoreError(message, { outcome: "unknown" });
}
