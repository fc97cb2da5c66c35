/**
 * Waiters of one process that take turns on one grant. The first call at a name that no other call
 * wants is no waiter, and needs no local queue: see lease-request.ts.
 *
 * One representative stands in the store's queue; its grant reserves a span of tokens, one for each
 * turn. The span is a licence given by the store: this process can never take more turns in a row
 * than it was granted while another one waits, whatever messages are lost. When the licence is used
 * up, the lock is released and asked for again in the same call: if no other process waits it comes
 * back with a new span, otherwise it goes to the next waiter, and this local queue queues. Turns
 * share one held grant, so they share its deadline: if it is lost, the turn under way is lost with
 * it.
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
  /** The representative's wait, while one is asking. */
  #asking: AcquireWait | null = null;
  /** The first call at the lock, until it ends or this local queue has its held grant. */
  #ahead: LeaseRequest | null = null;
  /** Keeps the process alive for those who wait for a turn: nothing in the store does. */
  #stay: Timer | undefined;

  constructor(target: Target, options: Options, localQueues: LocalQueues) {
    this.#target = target;
    this.#options = options;
    this.#localQueues = localQueues;
  }

  /** The local queue of the calls that come while `call` asks for the lock, or holds it. */
  static behind(request: LeaseRequest, localQueues: LocalQueues): LocalQueue {
    const localQueue = new LocalQueue(request.target, request.options, localQueues);
    localQueue.#ahead = request;
    request.yieldTo(localQueue);
    return localQueue;
  }

  /**
   * The call ahead holds the lock by a grant for one turn. False if this local queue has a request
   * of its own by now.
   */
  adopt(lease: HeldLease): boolean {
    if (this.#asking || this.#held) return false;
    this.#ahead = null;
    this.#lease = lease;
    this.#held = lease.held;
    this.#held.user = this;
    // Turns may be left of an earlier grant.
    this.#turnsLeft = 0;
    this.#tellMembers(this.#ownView(), 0);
    this.#stayAlive();
    return true;
  }

  /** The call ahead stands in the store's queue. */
  onQueuedAhead(): void {
    this.#goOn();
  }

  /** The call ahead has ended, and this local queue does not have its held grant. */
  onEndAhead(failure: unknown): void {
    this.#ahead = null;
    if (failure && !this.#asking) this.#onFailure(failure);
    else this.#goOn();
  }

  /**
   * A caller that does not wait asks the store itself, unless this local queue knows that the lock
   * is held.
   */
  takes(options: Options, wait: AcquireWait | null): boolean {
    const asking = this.#asking ?? this.#ahead?.asking;
    const isKnown =
      wait !== null || this.#held !== null || (asking ? asking.hasRecentReport : !this.#ahead);
    return isKnown && areEqual(options, this.#options);
  }

  /** Whether to ask the store, or to end: it is not known that the lock will come here. */
  get #isIdle(): boolean {
    if (this.#held || this.#asking) return false;
    // The store may grant the lock to the call ahead at once, and then this local queue has its
    // held grant.
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

  /** The runs around the calls that wait here: the store knows only those of the first call. */
  *enclosing(): Iterable<Enclosing> {
    for (const { request } of this.#members) yield* request.options.inside ?? [];
  }

  /** Where the place of the first member is not known any more, the place of this one is not. */
  #tellMember(event: AcquireEvent): void {
    if (this.#held) noteQueued(event, this.#ownView(), this.#members.size);
    else if (this.#asking?.holder) noteQueued(event, this.#asking.holder, null);
  }

  /** The store queued the first member: all other members stand behind it. */
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
    // rule: cohort-goes-on-after-a-loss
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
    // A waiter that had a turn may come back for another while the other waiters have theirs.
    const isShared = this.#members.size > 1 || this.#ahead !== null;
    // The store may grant this request right after that of the call ahead.
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
    // The new grant may end that of the call ahead, which must not make this local queue ask again.
    const held = this.#localQueues.leaseRenewer.keep(result, this, this.#options);
    // The grant ended on its way: members that wait ask again.
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
    // Only a call that does not wait can be busy here; a call that gave up has left before.
    if (!first.request.wait && this.#members.first === first) {
      this.#members.shift();
      first.resolve(result);
    }
    this.#goOn();
  }

  /** The store is out of reach, and so it is for everybody who waits here. */
  #onFailure(error: unknown): void {
    this.#asking = null;
    for (let member = this.#members.shift(); member; member = this.#members.shift()) {
      member.request.wait?.settle();
      member.reject(error);
    }
    this.#goOn();
  }

  /** If no waiter is left, the turn is over at once. */
  #startTurn(held: HeldGrant, startMs: number): HeldLease {
    const member = this.#members.shift();
    member?.request.wait?.settle();
    const { leaseRenewer } = this.#localQueues;
    // rule: turn-has-its-own-token
    const token = this.#nextToken++;
    // rule: span-is-used-up
    this.#turnsLeft -= 1;
    // A longer ttl that the turn before renewed for does not count for this one.
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

  /** Ends a turn: the next one begins on the same held grant, or the held grant is released. */
  giveBack(lease: HeldLease): Promise<boolean> {
    const { held } = lease;
    this.#lease = null;
    // A held grant that is no longer renewed (its grace has begun) is no ground for another turn.
    const isOver = this.#turnsLeft === 0 || this.#members.size === 0 || !held.renews;
    if (isOver) return this.#endHold(lease);
    lease.publishRelease("released", undefined);
    this.#startTurn(held, this.#localQueues.store.runtime.clock.nowMs()).publishHandoff(true);
    return Promise.resolve(true);
  }

  /** The release and the next request of this process travel in one call. */
  #endHold(last: HeldLease): Promise<boolean> {
    this.#held = null;
    const released = this.#localQueues.releases.giveBack(last);
    // rule: cohort-goes-on-after-its-span
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
    // A listener of the loss may have asked for the lock again already.
    if (!this.#isIdle) return;
    if (this.#members.size > 0) this.#ask();
    else if (!this.#ahead) this.#localQueues.remove(this.#target);
  }

  #busy(): Busy {
    const holder = this.#ownView() ?? this.#asking?.holder ?? null;
    const { grantsInMs = 0 } = this.#asking ?? this.#ahead?.asking ?? {};
    return { type: "busy", holder, mark: null, grantsInMs };
  }

  /** The lock is held by this very process: no need to ask the store by whom. */
  #ownView(): HolderView | null {
    const lease = this.#lease;
    if (!lease) return null;
    const { mode, weight, meta: ofClaim } = lease.held.grant.claim;
    const { traceparent } = lease;
    // The claim is that of the first turn.
    const meta = traceparent === undefined ? ofClaim : { ...ofClaim, traceparent };
    const nowMs = this.#localQueues.store.runtime.clock.nowMs();
    const heldMs = nowMs - lease.startMs;
    // `lease.remainingMs` might end the lease, in the middle of a change.
    const remainingMs = Math.max(0, lease.held.deadlineMs - nowMs);
    return { token: lease.token, mode, weight, limit: null, meta, heldMs, remainingMs };
  }
}

/** Only equals share a held grant: what one turn relies on must be true for all. */
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

/** The store shows one meta for all turns, so all turns must have the same. */
function isSame(a: Meta, b: Meta): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
