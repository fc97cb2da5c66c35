/**
 * The requests of one process that wait for the same lock and take turns on one grant. A request
 * without competitors in its process needs no local queue: see lease-request.ts.
 *
 * One request represents them all in the store's queue. Its grant reserves a span of tokens, one
 * per turn, so however many messages are lost, this process never takes more turns in a row than
 * the store granted while another process waits. After the last turn the release and the next
 * request travel in one batch: if no other process waits, the lock comes back with a new span;
 * otherwise the next waiter gets it and this process queues again. All turns share the deadline of
 * the grant, so losing the grant ends the current turn.
 */

import type { AcquireResult, Busy, HolderView, Meta, RenewalReport } from "../contract/store.js";
import type { LossReason } from "../errors/index.js";
import type { AcquireEvent } from "../events/events.js";
import { NO_CALL } from "../events/publish.js";
import type { Options } from "../options/options.js";
import { Fifo, type Place } from "../rules/fifo.js";
import type { Timer } from "../time/timers.js";
import { noteQueued } from "./acquire-event.js";
import { AcquireWait } from "./acquire-wait.js";
import type { GrantUser, HeldGrant } from "./held-grant.js";
import { HeldLease, type LeaseResult, type Releaser } from "./lease.js";
import type { LeaseRequest } from "./lease-request.js";
import type { LocalQueues } from "./local-queues.js";
import { claimFor, type Enclosing, type Target } from "./request-options.js";

const DAY_MS = 86_400_000;

interface Member {
  readonly request: LeaseRequest;
  readonly resolve: (outcome: LeaseResult) => void;
  readonly reject: (error: unknown) => void;
}

export class LocalQueue implements GrantUser, Releaser {
  readonly #target: Target;
  readonly #options: Options;
  readonly #localQueues: LocalQueues;
  readonly #members = new Fifo<Member>();
  #held: HeldGrant | null = null;
  #lease: HeldLease | null = null;
  #turnsLeft = 0;
  #nextToken = 0n;
  /** The wait of the request in the store; null if there is none. */
  #asking: AcquireWait | null = null;
  /** The request that came first, until it ends or this queue has taken over its grant. */
  #ahead: LeaseRequest | null = null;
  /** Keeps the process alive while requests wait for a local turn: no store timer does. */
  #stay: Timer | undefined;

  constructor(target: Target, options: Options, localQueues: LocalQueues) {
    this.#target = target;
    this.#options = options;
    this.#localQueues = localQueues;
  }

  /** Makes the queue for requests that arrive while `request` waits for the lock or holds it. */
  static behind(request: LeaseRequest, localQueues: LocalQueues): LocalQueue {
    const localQueue = new LocalQueue(request.target, request.options, localQueues);
    localQueue.#ahead = request;
    request.yieldTo(localQueue);
    return localQueue;
  }

  /**
   * Takes over the grant of the first request, which is good for one turn. Returns false if this
   * queue already has a request in the store or a grant.
   */
  adopt(lease: HeldLease): boolean {
    if (this.#asking || this.#held) return false;
    this.#ahead = null;
    this.#lease = lease;
    this.#held = lease.held;
    this.#held.user = this;
    // An earlier grant may have left some.
    this.#turnsLeft = 0;
    this.#tellMembers(this.#ownView(), 0);
    this.#stayAlive();
    return true;
  }

  /** The store has queued the first request. */
  onQueuedAhead(): void {
    this.#goOn();
  }

  /** The first request has ended, and this queue did not take over its grant. */
  onEndAhead(failure: unknown): void {
    this.#ahead = null;
    if (failure && !this.#asking) this.#onFailure(failure);
    else this.#goOn();
  }

  /**
   * Whether a request may join. One that does not wait asks the store itself unless this queue
   * knows that the lock is held.
   */
  takes(options: Options, wait: AcquireWait | null): boolean {
    const asking = this.#asking ?? this.#ahead?.asking;
    const isKnown =
      wait !== null || this.#held !== null || (asking ? asking.hasRecentReport : !this.#ahead);
    return isKnown && areEqual(options, this.#options);
  }

  /** Whether this queue has neither a grant nor a request in the store that will bring one. */
  get #isIdle(): boolean {
    if (this.#held || this.#asking) return false;
    // If the store grants the first request at once, this queue takes over that grant.
    return !this.#ahead || this.#isQueuedAhead;
  }

  get #isQueuedAhead(): boolean {
    return this.#ahead?.asking?.isReported === true;
  }

  get name(): string {
    return this.#target.name;
  }

  get lease(): HeldLease | null {
    return this.#lease;
  }

  join(request: LeaseRequest): Promise<LeaseResult> {
    const { options, wait } = request;
    const isIdle = this.#isIdle;
    if (!isIdle && !wait) return Promise.resolve(this.#busy());
    if (options.event) this.#tellMember(options.event);
    return new Promise((resolve, reject) => {
      const place = this.#members.push({ request, resolve, reject });
      wait?.onEnd(() => this.#leave(place));
      if (isIdle) this.#goOn();
      this.#stayAlive();
    });
  }

  /** The `run` scopes around the waiting requests. The store knows those of the first only. */
  *enclosing(): Iterable<Enclosing> {
    for (const { request } of this.#members) yield* request.options.inside ?? [];
  }

  /** Once the first member's position is unknown, so is the position of a later one. */
  #tellMember(event: AcquireEvent): void {
    if (this.#held) noteQueued(event, this.#ownView(), this.#members.size);
    else if (this.#asking?.holder) noteQueued(event, this.#asking.holder, null);
  }

  /** The store queued the first member; all others are behind it. */
  #tellMembers(holder: HolderView | null, ahead: number | null): void {
    let before = 0;
    for (const { request } of this.#members) {
      noteQueued(request.options.event, holder, ahead === null ? null : ahead + before);
      before += 1;
    }
  }

  onWarning(): void {
    this.#lease?.onWarning();
  }

  onRenewal(report: RenewalReport): void {
    this.#lease?.onRenewal(report);
  }

  onLost(reason: LossReason, detail: string): void {
    const lease = this.#lease;
    // rule: no-turn-on-a-grant-that-ended
    this.#held = null;
    this.#lease = null;
    lease?.onLost(reason, detail);
    // rule: queue-goes-on-after-a-loss
    this.#goOn();
  }

  #leave(place: Place<Member>): void {
    const { request, resolve } = place.value;
    const { wait } = request;
    // rule: no-turn-after-giving-up
    this.#members.remove(place);
    const asking = this.#asking ?? this.#ahead?.asking;
    if (this.#held) wait?.report(this.#ownView());
    else if (asking) wait?.learnFrom(asking);
    resolve(this.#busy());
    this.#stayAlive();
    if (this.#members.size === 0) this.#asking?.end("withdrawn");
  }

  #ask(): void {
    const first = this.#members.first;
    if (!first) return;
    const { store } = this.#localQueues;
    const { options } = first.request;
    const onReport = options.event
      ? (holder: HolderView | null, ahead: number | null) => this.#tellMembers(holder, ahead)
      : undefined;
    const wait = new AcquireWait(store.runtime, Number.POSITIVE_INFINITY, undefined, onReport);
    this.#asking = wait;
    // A caller that had a turn often asks again while the others take theirs.
    const isShared = this.#members.size > 1 || this.#ahead !== null;
    // The store may grant this request right after the first one, which counts as a turn.
    const turnsAhead = this.#ahead ? 1 : 0;
    // rule: turns-are-bounded
    const span = isShared ? options.maxLocalTurns - turnsAhead : 1;
    const claim = claimFor(store, this.#target, options, span, first.request.storeTimeoutMs);
    store.acquire(claim, first.request.wait ? wait : null).then(
      (result) => this.#onResult(first, result),
      (error) => this.#onFailure(error),
    );
  }

  #onResult(first: Member, result: AcquireResult): void {
    if (result.type === "busy") return this.#onBusy(first, result);
    // The new grant may end that of the first request; that must not make this queue ask again.
    const held = this.#localQueues.leaseRenewer.keep(result, this, this.#options);
    // The grant ended before it arrived: waiting members ask again.
    if (!held) return this.#onBusy(first, this.#busy());
    this.#asking = null;
    this.#held = held;
    this.#nextToken = result.token;
    this.#turnsLeft = result.span;
    const lease = this.#startTurn(held, held.startMs);
    if (result.isHandoff) lease.publishHandoff(false);
  }

  /** The lock was not granted, or the grant has ended. */
  #onBusy(first: Member, result: Busy): void {
    this.#asking = null;
    // Only a request that does not wait can be busy here; one that gave up has already left.
    if (!first.request.wait && this.#members.first === first) {
      this.#members.shift();
      first.resolve(result);
    }
    this.#goOn();
  }

  /** The store cannot be reached, so all members fail. */
  #onFailure(error: unknown): void {
    this.#asking = null;
    for (let member = this.#members.shift(); member; member = this.#members.shift()) {
      member.request.wait?.settle();
      member.reject(error);
    }
    this.#goOn();
  }

  /** Starts the next turn. If no member is left, the turn ends at once. */
  #startTurn(held: HeldGrant, startMs: number): HeldLease {
    const member = this.#members.shift();
    member?.request.wait?.settle();
    const { leaseRenewer } = this.#localQueues;
    // rule: turn-has-its-own-token
    const token = this.#nextToken++;
    // rule: span-is-used-up
    this.#turnsLeft -= 1;
    // The previous turn may have renewed for a longer ttl, which must not apply to this one.
    leaseRenewer.setTtl(held, this.#options.ttlMs);
    const origin = member?.request ?? this.#target;
    const lease = new HeldLease(held, origin, leaseRenewer, this, { token, startMs });
    this.#lease = lease;
    this.#stayAlive();
    lease.publishHeld();
    if (member) member.resolve(lease);
    else NO_CALL.runInAsyncScope(() => void lease.release());
    return lease;
  }

  /** Ends a turn: the next one starts on the same grant, or the grant is released. */
  giveBack(lease: HeldLease): Promise<boolean> {
    const { held } = lease;
    this.#lease = null;
    // No turn starts on a grant that is no longer renewed because its grace has begun.
    const isOver = this.#turnsLeft === 0 || this.#members.size === 0 || !held.renews;
    if (isOver) return this.#endHold(lease);
    lease.publishRelease("released", undefined);
    // A listener may have ended the grant, or taken longer than the lease lasts: then the waiters
    // have asked the store again.
    if (this.#localQueues.leaseRenewer.check(held)) {
      this.#startTurn(held, this.#localQueues.store.runtime.clock.nowMs()).publishHandoff(true);
    }
    return Promise.resolve(true);
  }

  /** Releases the grant and asks again; both commands travel in one batch. */
  #endHold(last: HeldLease): Promise<boolean> {
    this.#held = null;
    const released = this.#localQueues.releases.giveBack(last);
    // rule: queue-goes-on-after-its-span
    this.#goOn();
    return released;
  }

  #stayAlive(): void {
    const isNeeded = this.#held !== null && this.#members.size > 0;
    if (!isNeeded) {
      this.#stay?.cancel();
      this.#stay = undefined;
    } else {
      const again = (): void => {
        this.#stay = undefined;
        this.#stayAlive();
      };
      this.#stay ??= this.#localQueues.store.runtime.timers.after(DAY_MS, again, true);
    }
  }

  #goOn(): void {
    this.#stayAlive();
    // A listener of the loss may already have asked for the lock.
    if (!this.#isIdle) return;
    if (this.#members.size > 0) this.#ask();
    else if (!this.#ahead) this.#localQueues.remove(this.#target);
  }

  #busy(): Busy {
    const holder = this.#ownView() ?? this.#asking?.holder ?? null;
    const { grantsInMs = 0 } = this.#asking ?? this.#ahead?.asking ?? {};
    return { type: "busy", holder, mark: null, grantsInMs };
  }

  /** This process holds the lock, so the store need not be asked who does. */
  #ownView(): HolderView | null {
    const lease = this.#lease;
    if (!lease) return null;
    const { mode, weight, meta: ofClaim } = lease.held.grant.claim;
    const { traceparent } = lease;
    // The claim belongs to the first turn; later turns have a different traceparent.
    const meta = traceparent === undefined ? ofClaim : { ...ofClaim, traceparent };
    const nowMs = this.#localQueues.store.runtime.clock.nowMs();
    const heldMs = nowMs - lease.startMs;
    // Not `lease.remainingMs`, which could end the lease in the middle of this change.
    const remainingMs = Math.max(0, lease.held.deadlineMs - nowMs);
    return { token: lease.token, mode, weight, limit: null, meta, heldMs, remainingMs };
  }
}

/** Requests share a grant only if their options agree, because each turn relies on its own. */
export function areEqual(a: Options, b: Options): boolean {
  const { ttlMs, graceMs, storeTimeoutMs, meta } = b;
  if (a === b) return true;
  // rule: only-equals-take-turns
  return (
    a.ttlMs === ttlMs &&
    a.graceMs === graceMs &&
    a.storeTimeoutMs === storeTimeoutMs &&
    isSame(a.meta, meta)
  );
}

/** The store shows one meta for all turns, so all must have the same. */
function isSame(a: Meta, b: Meta): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
