import { StoreError } from "../errors.js";
import type { Busy, Store } from "../store.js";
import type { Limited, Limits } from "../time/limits.js";
import type { Call } from "./call.js";
import { explain } from "./explain.js";
import type { LeaseResult } from "./lease.js";
import type { WaitTime } from "./wait-time.js";

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
export class CallLimit implements Limited {
  readonly #call: Call;
  readonly #store: Store;
  readonly #limits: Limits;
  readonly #startMs: number;
  readonly #stepMs: number;
  #stepsLeft = STEPS;
  #resolve: (result: LeaseResult) => void = () => {};
  #reject: (error: unknown) => void = () => {};
  #resultOf: (busy: Busy) => LeaseResult = (busy) => busy;
  #isOver = false;
  /** The failure of the call, while the store looks for its reason. */
  failure: unknown;
  /** The error of this limit, with the reason if the store found one. */
  #explained: StoreError | null = null;
  dueMs: number;
  heapIndex = -1;

  /** `patienceMs`: how long a call that does not wait may take. */
  constructor(call: Call, store: Store, limits: Limits, patienceMs: number) {
    this.#call = call;
    this.#store = store;
    this.#limits = limits;
    this.#startMs = store.port.clock.nowMs();
    this.#stepMs = Math.max(0, (call.wait ? GRACE_MS : patienceMs) - LAST_MS) / STEPS;
    this.dueMs = call.wait ? call.wait.untilMs : this.#startMs + this.#stepMs;
    if (call.wait) call.wait.onOver = () => this.#onWaitEnd();
  }

  /** The caller has its result. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * Settles as `asked` does, or in time: then `resultOf` makes the result of a lock that is held. A
   * lease that comes after that is given back.
   */
  guard(asked: Promise<LeaseResult>, resultOf: (busy: Busy) => LeaseResult): Promise<LeaseResult> {
    return new Promise((resolve, reject) => {
      this.#resultOf = resultOf;
      this.#resolve = resolve;
      this.#reject = reject;
      if (this.heapIndex < 0 && Number.isFinite(this.dueMs)) this.#limits.add(this);
      asked.then(
        (result) => (this.#end() ? resolve(result) : void giveBack(result)),
        (error: unknown) => void (this.#end() && reject(error)),
      );
    });
  }

  onDue(): void {
    if (this.#isOver) return;
    // rule: call-ends-in-time
    if (this.#stepsLeft === 0) return this.#conclude();
    // The timer of the wait is due at the same time, and may be a moment later.
    const isWaiting = this.#call.wait?.ended === false;
    // This look may have ended the wait, which has planned the next step.
    if (this.heapIndex >= 0) return;
    if (!isWaiting) this.#stepsLeft -= 1;
    if (this.#stepsLeft === STEPS_TO_EXPLAIN) this.#explain();
    this.#plan(this.#stepsLeft === 0 ? LAST_MS : this.#stepMs);
  }

  /** By time, by the signal of the caller, or because the client closes. */
  #onWaitEnd(): void {
    if (this.#isOver) return;
    this.#limits.remove(this);
    this.#plan(this.#stepMs);
  }

  /** A timer that is a little late does not delay the next step; a blocked event loop does. */
  #plan(delayMs: number): void {
    const nowMs = this.#store.port.clock.nowMs();
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

  #end(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#limits.remove(this);
    return true;
  }

  #conclude(): void {
    this.#isOver = true;
    const { wait, options, target } = this.#call;
    // The calls behind this one ask the store themselves.
    if (this.#call.lease === null) this.#call.leave();
    if (options.signal?.aborted) return this.#reject(options.signal.reason);
    if (wait?.isInformed) return this.#resolveBusy(wait);
    const error = this.#explained ?? this.failure ?? this.#error();
    this.#reject(error instanceof StoreError ? error.about(target.name, this.#store.name) : error);
  }

  #resolveBusy({ holder, grantsInMs }: WaitTime): void {
    try {
      this.#resolve(this.#resultOf({ type: "busy", holder, mark: null, grantsInMs }));
    } catch (error) {
      this.#reject(error);
    }
  }

  #error(): StoreError {
    return unansweredError(this.#store.port.clock.nowMs() - this.#startMs);
  }
}

/** Whether the lock is held is unknown. */
export function unansweredError(silentMs: number): StoreError {
  const message = `The store did not answer within ${Math.round(silentMs)} ms.`;
  return new StoreError(message, { outcome: "unknown" });
}

function giveBack(result: LeaseResult): void {
  if (result.type === "granted") void result.release();
}
