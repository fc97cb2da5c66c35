import type { Busy, Store } from "../contract/store.js";
import { StoreError } from "../errors/index.js";
import type { Limited, Limits } from "../time/limits.js";
import type { AcquireWait } from "./acquire-wait.js";
import { explain } from "./explain.js";
import type { LeaseRequest } from "./lease-request.js";

/** A call ends this long after its wait at the latest, whatever the store does. */
export const GRACE_MS = 250;
/** The last part of it, in which a failure that the store finds by itself may arrive. */
const LAST_MS = 25;
/** The part in which the store may say whether the lock is held. */
export const LAST_TRY_MS: number = GRACE_MS - LAST_MS;

/**
 * Time in which the event loop is blocked is not silence of the store: the answers may be there,
 * unread. A block costs one step, however long it takes.
 */
const STEPS = 5;
/** While this many steps are left, the store looks for the reason. */
const STEPS_TO_EXPLAIN = 2;

/**
 * Ends one call in time. The store may take longer to give up: what it answers then is given back.
 * The withdrawal of the owner goes on in the store, so exclusion does not rest on this.
 */
export class RequestLimit implements Limited {
  readonly #request: LeaseRequest;
  readonly #store: Store;
  readonly #limits: Limits;
  readonly #startMs: number;
  readonly #stepMs: number;
  #stepsLeft = STEPS;
  /** The failure of the call, while the store looks for its reason. */
  failure: unknown;
  /** The error of this limit, with the reason if the store found one. */
  #explained: StoreError | null = null;
  dueMs: number;
  heapIndex = -1;

  /** The call may take `patienceMs` from now on, or from the end of its wait. */
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

  /** A timer that is a little late does not delay the next step; a blocked event loop does. */
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
    // The calls behind this one ask the store themselves.
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

/** Whether the lock is held is unknown. */
export function unansweredError(silentMs: number): StoreError {
  const message = `The store did not answer within ${Math.round(silentMs)} ms.`;
  return new StoreError(message, { outcome: "unknown" });
}
