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

/** The functions of a promise that is settled would keep the promise in memory. */
const HAS_ENDED = (): void => {};

/**
 * One request for a lock, and the origin of its lease.
 *
 * A call is lone while no other call of its process wants the lock: it has a grant of its own, for
 * one turn. The first call that comes meanwhile makes a local queue. If the lone call holds, or is
 * granted the lock at once, the local queue has its held grant: the members wait in this process,
 * and ask the store when the held grant ends. If the store lets the lone call wait, the local queue
 * stands in the store's queue behind it.
 */
export class LeaseRequest implements Origin, GrantUser, Releaser {
  readonly target: Target;
  readonly options: RequestOptions;
  /** Null for a call that does not wait, and after its end. */
  wait: AcquireWait | null;
  /** The local queue of the calls that came after this lone one; null once this call has ended. */
  #localQueue: LocalQueue | null = null;
  #isAdopted = false;
  /** No other call has come, and this one has not ended: `LocalQueues` knows it. */
  isUncontended = false;
  lease: HeldLease | null = null;
  /** Ends the call in time: from the start of a call that does not wait, or the end of its wait. */
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

  /** The caller has its outcome, or never waited for one. */
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

  /** Whether a local queue has, or may yet take over, the held grant of this call. */
  get mayBeShared(): boolean {
    return this.isUncontended || this.#localQueue !== null;
  }

  /** Another call has come: its local queue learns what becomes of this one. */
  yieldTo(localQueue: LocalQueue): void {
    this.isUncontended = false;
    this.#localQueue = localQueue;
    if (this.lease) this.#isAdopted = localQueue.adopt(this.lease);
    else this.wait?.onNextReport(() => this.#localQueue?.onQueuedAhead());
  }

  /** The store granted the lock to this call. */
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

  /** The call has ended: without a lease, perhaps by a failure of the store, or with its lease. */
  leave(failure?: unknown): void {
    if (this.isUncontended) this.#localQueues.remove(this.target);
    this.isUncontended = false;
    // A local queue that has the held grant goes on with it.
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
