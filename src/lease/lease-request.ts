import type { RenewalReport } from "../contract/store.js";
import { type LossReason, StoreError } from "../errors/index.js";
import type { CallContext, LockKind } from "../events/events.js";
import type { AcquireWait } from "./acquire-wait.js";
import type { GrantUser } from "./held-grant.js";
import type { HeldLease, LeaseResult, Origin, Releaser } from "./lease.js";
import type { LocalQueue } from "./local-queue.js";
import type { LocalQueues } from "./local-queues.js";
import type { RequestLimit } from "./request-limit.js";
import type { RequestOptions, Target } from "./request-options.js";

/** Replaces the functions of a settled promise, which would keep the promise in memory. */
const HAS_ENDED = (): void => {};

/**
 * One request for a lock, and the origin of its lease.
 *
 * A request is uncontended while no other request of its process wants the lock; it has a separate
 * grant for one turn. The next request makes a local queue. If the first one holds the lock, or
 * gets it at once, the local queue takes over its grant: the members wait in this process and ask
 * the store when the grant ends. If the store queues the first request, the local queue asks the
 * store too and stands behind it.
 */
export class LeaseRequest implements Origin, GrantUser, Releaser {
  readonly target: Target;
  readonly options: RequestOptions;
  /** Null for a request that does not wait, and after the end. */
  wait: AcquireWait | null;
  /** The queue of the requests that came after this one; null once this one has ended. */
  #localQueue: LocalQueue | null = null;
  #isAdopted = false;
  /**
   * No other request has come and this one has not ended. `LocalQueues` then has it by its name.
   */
  isUncontended = false;
  lease: HeldLease | null = null;
  /**
   * Ends the request in time: runs from the start if it does not wait, else from the end of the
   * wait.
   */
  limit: RequestLimit | null = null;
  /** How long the store may stay silent. */
  readonly storeTimeoutMs: number;
  readonly #localQueues: LocalQueues;
  #resolve: (result: LeaseResult) => void = HAS_ENDED;
  #reject: (error: unknown) => void = HAS_ENDED;

  constructor(
    target: Target,
    options: RequestOptions,
    wait: AcquireWait | null,
    storeTimeoutMs: number,
    localQueues: LocalQueues,
  ) {
    this.target = target;
    this.options = options;
    this.wait = wait;
    this.storeTimeoutMs = storeTimeoutMs;
    this.#localQueues = localQueues;
  }

  /** Sets where the outcome goes. */
  expect(resolve: (result: LeaseResult) => void, reject: (error: unknown) => void): void {
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /** The caller has its outcome, or did not expect one. */
  get hasEnded(): boolean {
    return this.#resolve === HAS_ENDED;
  }

  resolve(result: LeaseResult): void {
    const resolve = this.#resolve;
    this.#resolve = this.#reject = HAS_ENDED;
    resolve(result);
  }

  reject(error: unknown): void {
    const reject = this.#reject;
    this.#resolve = this.#reject = HAS_ENDED;
    reject(error);
  }

  /**
   * The result as the caller is told it. Throws the reason of its signal. A store that grants no
   * free lock is not contention: no holder is in the way.
   */
  told(result: LeaseResult): LeaseResult {
    if (result.type === "granted") return result;
    const { wait } = this;
    this.options.signal?.throwIfAborted();
    const holder = result.holder ?? wait?.holder ?? null;
    const grantsInMs = result.grantsInMs || wait?.grantsInMs || 0;
    if (holder === null && result.mark === null && grantsInMs > 0) throw notGranting(grantsInMs);
    return { ...result, holder };
  }

  get kind(): LockKind {
    return this.target.kind;
  }

  get context(): CallContext | undefined {
    return this.options.context;
  }

  get traceparent(): string | undefined {
    return this.options.event?.traceparent;
  }

  get release(): RequestOptions["release"] {
    return this.options.release;
  }

  /** Its wait, while it has no lease. */
  get asking(): AcquireWait | null {
    return this.lease ? null : this.wait;
  }

  /** Whether a local queue has taken over this request's grant, or still may. */
  get mayBeShared(): boolean {
    return this.isUncontended || this.#localQueue !== null;
  }

  /** Another request has come; from now on `localQueue` hears what becomes of this one. */
  yieldTo(localQueue: LocalQueue): void {
    this.isUncontended = false;
    this.#localQueue = localQueue;
    if (this.lease) this.#isAdopted = localQueue.adopt(this.lease);
    else this.wait?.onNextReport(() => this.#localQueue?.onQueuedAhead());
  }

  /** The store granted this request. */
  onGrant(lease: HeldLease): void {
    this.lease = lease;
    this.#isAdopted = this.#localQueue?.adopt(lease) ?? false;
  }

  onWarning(): void {
    this.lease?.onWarning();
  }

  onRenewal(report: RenewalReport): void {
    this.lease?.onRenewal(report);
  }

  onLost(reason: LossReason, detail: string): void {
    this.leave();
    this.lease?.onLost(reason, detail);
  }

  giveBack(lease: HeldLease): Promise<boolean> {
    if (this.#isAdopted && this.#localQueue) return this.#localQueue.giveBack(lease);
    this.leave();
    return this.#localQueues.releases.giveBack(lease);
  }

  /** The request has ended without a lease (perhaps because the store failed), or its lease has. */
  leave(failure?: unknown): void {
    if (this.isUncontended) this.#localQueues.remove(this.target);
    this.isUncontended = false;
    // A local queue that took over the grant continues with it.
    if (this.#isAdopted) return;
    const localQueue = this.#localQueue;
    this.#localQueue = null;
    localQueue?.onEndAhead(failure);
  }
}

function notGranting(retryAfterMs: number): StoreError {
  const message =
    `The store grants no free lock for another ${Math.ceil(retryAfterMs / 1000)} s. ` +
    "Leases that a restart or a failover may have made it forget must expire first.";
  return new StoreError(message, { outcome: "not_applied", retryAfterMs });
}
