/**
 * Waiters of one process that take turns on one grant. The first call at a name that no other call
 * wants is no waiter, and needs no cohort: see call.ts.
 *
 * One representative stands in the store's queue; its grant reserves a span of tokens, one for each
 * turn. The span is a licence given by the store: this process can never take more turns in a row
 * than it was granted while another one waits, whatever messages are lost. When the licence is used
 * up, the lock is released and asked for again in the same call: if no other process waits it
 * comes back with a new span, otherwise it goes to the next waiter, and this cohort queues. Turns
 * share one hold, so they share its deadline: if it is lost, the turn under way is lost with it.
 */

import type { AcquireResult, Busy, HolderView, Meta, RenewalReport } from "../contract/store.js";
import type { LossReason } from "../errors/index.js";
import type { AcquireEvent } from "../events/events.js";
import { NO_CALL } from "../events/publish.js";
import type { Options } from "../options/options.js";
import { Fifo, type Place } from "../rules/fifo.js";
import type { Timer } from "../time/timers.js";
import type { Call } from "./call.js";
import { claimFor, type Enclosing, type Target } from "./call-options.js";
import type { Cohorts } from "./cohorts.js";
import type { Hold, Tenant } from "./hold.js";
import { HeldLease, type LeaseGiver, type LeaseResult } from "./lease.js";
import { noteQueued } from "./traced.js";
import { WaitTime } from "./wait-time.js";

const DAY_MS = 86_400_000;

interface Member {
  readonly call: Call;
  readonly resolve: (outcome: LeaseResult) => void;
  readonly reject: (error: unknown) => void;
}

export class Cohort implements Tenant, LeaseGiver {
  readonly #target: Target;
  readonly #options: Options;
  readonly #cohorts: Cohorts;
  readonly #members = new Fifo<Member>();
  #hold: Hold | null = null;
  #lease: HeldLease | null = null;
  #turnsLeft = 0;
  #nextToken = 0n;
  /** The representative's wait, while one is asking. */
  #asking: WaitTime | null = null;
  /** The first call at the lock, until it ends or this cohort has its hold. */
  #ahead: Call | null = null;
  /** Keeps the process alive for those who wait for a turn: nothing in the store does. */
  #stay: Timer | undefined;

  constructor(target: Target, options: Options, cohorts: Cohorts) {
    this.#target = target;
    this.#options = options;
    this.#cohorts = cohorts;
  }

  /** The cohort of the calls that come while `call` asks for the lock, or holds it. */
  static behind(call: Call, cohorts: Cohorts): Cohort {
    const cohort = new Cohort(call.target, call.options, cohorts);
    cohort.#ahead = call;
    call.yieldTo(cohort);
    return cohort;
  }

  /**
   * The call ahead holds the lock by a grant for one turn. False if this cohort has a request of
   * its own by now.
   */
  adopt(lease: HeldLease): boolean {
    if (this.#asking || this.#hold) return false;
    this.#ahead = null;
    this.#lease = lease;
    this.#hold = lease.hold;
    this.#hold.tenant = this;
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

  /** The call ahead has ended, and this cohort does not have its hold. */
  onEndAhead(failure: unknown): void {
    this.#ahead = null;
    if (failure && !this.#asking) this.#onFailure(failure);
    else this.#goOn();
  }

  /**
   * A caller that does not wait asks the store itself, unless this cohort knows that the lock is
   * held.
   */
  takes(options: Options, wait: WaitTime | null): boolean {
    const asking = this.#asking ?? this.#ahead?.asking;
    const isKnown =
      wait !== null || this.#hold !== null || (asking ? asking.isInformed : !this.#ahead);
    return isKnown && areEqual(options, this.#options);
  }

  /** Whether to ask the store, or to end: it is not known that the lock will come here. */
  get #isIdle(): boolean {
    if (this.#hold || this.#asking) return false;
    // The store may grant the lock to the call ahead at once, and then this cohort has its hold.
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

  join(call: Call): Promise<LeaseResult> {
    const { options, wait } = call;
    const isIdle = this.#isIdle;
    if (!isIdle && !wait) return Promise.resolve(this.#busy());
    if (options.event) this.#tellMember(options.event);
    return new Promise((resolve, reject) => {
      const place = this.#members.push({ call, resolve, reject });
      wait?.onEnd(() => this.#leave(place));
      if (isIdle) this.#goOn();
      this.#stayAlive();
    });
  }

  /** The runs around the calls that wait here: the store knows only those of the first call. */
  *enclosing(): Iterable<Enclosing> {
    for (const { call } of this.#members) yield* call.options.inside ?? [];
  }

  /** Where the place of the first member is not known any more, the place of this one is not. */
  #tellMember(event: AcquireEvent): void {
    if (this.#hold) noteQueued(event, this.#ownView(), this.#members.size);
    else if (this.#asking?.holder) noteQueued(event, this.#asking.holder, null);
  }

  /** The store queued the first member: all other members stand behind it. */
  #tellMembers(holder: HolderView | null, ahead: number | null): void {
    let before = 0;
    for (const { call } of this.#members) {
      noteQueued(call.options.event, holder, ahead === null ? null : ahead + before);
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
    this.#hold = null;
    this.#lease = null;
    lease?.onLost(reason, detail);
    // rule: cohort-goes-on-after-a-loss
    this.#goOn();
  }

  #leave(place: Place<Member>): void {
    const { call, resolve } = place.value;
    const { wait } = call;
    // rule: no-turn-after-giving-up
    this.#members.remove(place);
    const asking = this.#asking ?? this.#ahead?.asking;
    if (this.#hold) wait?.report(this.#ownView());
    else if (asking) wait?.learnFrom(asking);
    resolve(this.#busy());
    this.#stayAlive();
    if (this.#members.size === 0) this.#asking?.end("withdrawn");
  }

  #ask(): void {
    const first = this.#members.first;
    if (!first) return;
    const { store } = this.#cohorts;
    const { options } = first.call;
    const onReport = options.event
      ? (holder: HolderView | null, ahead: number | null) => this.#tellMembers(holder, ahead)
      : undefined;
    const wait = new WaitTime(store.runtime, Number.POSITIVE_INFINITY, undefined, onReport);
    this.#asking = wait;
    // A waiter that had a turn may come back for another while the other waiters have theirs.
    const isShared = this.#members.size > 1 || this.#ahead !== null;
    // The store may grant this request right after that of the call ahead.
    const turnsAhead = this.#ahead ? 1 : 0;
    // rule: turns-are-bounded
    const span = isShared ? options.cohortLimit - turnsAhead : 1;
    const claim = claimFor(store, this.#target, options, span, first.call.storeTimeoutMs);
    store.acquire(claim, first.call.wait ? wait : null).then(
      (result) => this.#onResult(first, result),
      (error) => this.#onFailure(error),
    );
  }

  #onResult(first: Member, result: AcquireResult): void {
    if (result.type === "busy") return this.#onBusy(first, result);
    // The new grant may end that of the call ahead, which must not make this cohort ask again.
    const hold = this.#cohorts.keeper.keep(result, this, this.#options);
    // The grant ended on its way: members that wait ask again.
    if (!hold) return this.#onBusy(first, this.#busy());
    this.#asking = null;
    this.#hold = hold;
    this.#nextToken = result.token;
    this.#turnsLeft = result.span;
    const lease = this.#startTurn(hold, hold.startMs);
    if (result.isHandoff) lease.publishHandoff(false);
  }

  /** The lock was not granted, or the grant has ended. */
  #onBusy(first: Member, result: Busy): void {
    this.#asking = null;
    // Only a call that does not wait can be busy here; a call that gave up has left before.
    if (!first.call.wait && this.#members.first === first) {
      this.#members.shift();
      first.resolve(result);
    }
    this.#goOn();
  }

  /** The store is out of reach, and so it is for everybody who waits here. */
  #onFailure(error: unknown): void {
    this.#asking = null;
    for (let member = this.#members.shift(); member; member = this.#members.shift()) {
      member.call.wait?.settle();
      member.reject(error);
    }
    this.#goOn();
  }

  /** If no waiter is left, the turn is over at once. */
  #startTurn(hold: Hold, startMs: number): HeldLease {
    const member = this.#members.shift();
    member?.call.wait?.settle();
    const { keeper } = this.#cohorts;
    // rule: turn-has-its-own-token
    const token = this.#nextToken++;
    // rule: span-is-used-up
    this.#turnsLeft -= 1;
    // A longer ttl that the turn before renewed for does not count for this one.
    keeper.setTtl(hold, this.#options.ttlMs);
    const origin = member?.call ?? this.#target;
    const lease = new HeldLease(hold, origin, keeper, this, { token, startMs });
    this.#lease = lease;
    this.#stayAlive();
    lease.publishHeld();
    if (member) member.resolve(lease);
    else NO_CALL.runInAsyncScope(() => void lease.release());
    return lease;
  }

  /** Ends a turn: the next one begins on the same hold, or the hold is released. */
  giveBack(lease: HeldLease): Promise<boolean> {
    const { hold } = lease;
    this.#lease = null;
    // A hold that is no longer renewed (its grace has begun) is no ground for another turn.
    const isOver = this.#turnsLeft === 0 || this.#members.size === 0 || !hold.renews;
    if (isOver) return this.#endHold(lease);
    lease.publishRelease("released", undefined);
    this.#startTurn(hold, this.#cohorts.store.runtime.clock.nowMs()).publishHandoff(true);
    return Promise.resolve(true);
  }

  /** The release and the next request of this process travel in one call. */
  #endHold(last: HeldLease): Promise<boolean> {
    this.#hold = null;
    const released = this.#cohorts.releases.giveBack(last);
    // rule: cohort-goes-on-after-its-span
    this.#goOn();
    return released;
  }

  #stayAlive(): void {
    const isNeeded = this.#hold !== null && this.#members.size > 0;
    if (!isNeeded) {
      this.#stay?.cancel();
      this.#stay = undefined;
    } else {
      const again = (): void => {
        this.#stay = undefined;
        this.#stayAlive();
      };
      this.#stay ??= this.#cohorts.store.runtime.timers.after(DAY_MS, again, true);
    }
  }

  #goOn(): void {
    this.#stayAlive();
    // A listener of the loss may have asked for the lock again already.
    if (!this.#isIdle) return;
    if (this.#members.size > 0) this.#ask();
    else if (!this.#ahead) this.#cohorts.remove(this.#target);
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
    const { mode, weight, meta: ofClaim } = lease.hold.grant.claim;
    const { traceparent } = lease;
    // The claim is that of the first turn.
    const meta = traceparent === undefined ? ofClaim : { ...ofClaim, traceparent };
    const nowMs = this.#cohorts.store.runtime.clock.nowMs();
    const heldMs = nowMs - lease.startMs;
    // `lease.remainingMs` might end the lease, in the middle of a change.
    const remainingMs = Math.max(0, lease.hold.deadlineMs - nowMs);
    return { token: lease.token, mode, weight, limit: null, meta, heldMs, remainingMs };
  }
}

/** Only equals share a hold: what one turn relies on must be true for all. */
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
