/**
 * Renews the held grants of a client in batches, and ends those that could not be renewed in time.
 *
 * One timer serves all grants, from a heap ordered by due time. A renewal without an answer is
 * repeated until the deadline (see rules/renewal-pace.ts): a grant ends only if the store says so,
 * or at its deadline by the local clock. Every step reads the clock first, so a process that was
 * stopped, blocked or asleep ends expired grants before it renews anything. If the store has a
 * renewer, that thread sends the renewals and extends the deadlines; this class still compares them
 * with the clock.
 */

import type { Grant, Loss, Renewal, RenewalReport, Store } from "../contract/store.js";
import { assert, present } from "../errors/assert.js";
import { StoreError } from "../errors/index.js";
import { checkDuration } from "../options/options.js";
import { fits, joined, VACANT } from "../rules/fits.js";
import { cutReason } from "../rules/reason.js";
import { repeatAfterMs, retryAfterMs } from "../rules/renewal-pace.js";
import { Heap } from "../time/heap.js";
import type { Timer } from "../time/timers.js";
import { WorkUnderWay } from "../time/work-under-way.js";
import { explain } from "./explain.js";
import {
  type GrantUser,
  HeldGrant,
  type HeldGrantOptions,
  type HeldGrantOwner,
} from "./held-grant.js";
import { HeldGrants } from "./held-grants.js";
import type { HeldLease } from "./lease.js";
import { releaseIn } from "./releases.js";

/**
 * Renewals per call. The rest follows in the next turn of the event loop, to keep it responsive.
 */
const MAX_BATCH = 1_000;

/** Renewals that are due within this part of the ttl join the current batch. */
const ALONG_PART = 30;
const CLEANUP_MS = 5_000;
const MIN_SWEEP_SIZE = 64;
/** How long the store may search for the reason of a silence before the silence is reported. */
const EXPLAIN_MS = 100;
/**
 * Timers stop while the machine sleeps, but leases expire. Longest time between two looks: so soon
 * after it the lease renewer looks again.
 */
const MAX_NAP_MS = 1_000;

/** For a store that said `ended` and did not call `end`. */
const MISSING: Loss = { reason: "missing", detail: "" };
const REPLACED: Loss = { reason: "replaced", detail: "" };
const RESUMED: Loss = { reason: "replaced", detail: "this process resumed it by its handle" };

export class LeaseRenewer implements HeldGrantOwner {
  readonly #store: Store;
  readonly #heldGrants = new Heap<HeldGrant>((a, b) => a.dueMs < b.dueMs);
  readonly #byName = new HeldGrants();
  readonly #cleanups = new WorkUnderWay();
  /** Owners that this process gave back, and how long the store may still know them. */
  readonly #givenBack = new Map<string, number>();
  #sweepSize = MIN_SWEEP_SIZE;
  #timer: Timer | undefined;
  #timerMs = Number.POSITIVE_INFINITY;

  constructor(store: Store) {
    this.#store = store;
  }

  get store(): Store {
    return this.#store;
  }

  /** The leases that this process holds, except detached ones. */
  leases(): HeldLease[] {
    const leases: HeldLease[] = [];
    for (const { isDetached, user } of this.#heldGrants.values()) {
      if (!isDetached && user?.lease) leases.push(user.lease);
    }
    return leases;
  }

  /**
   * Keeps a grant. Returns null if the grant has ended on its way here: it is given back, and no
   * caller may get a lease of it.
   */
  keep(grant: Grant, user: GrantUser | null, options: HeldGrantOptions): HeldGrant | null {
    assert(!grant.listener, "a grant has one HeldGrant");
    const { runtime, renewer } = this.#store;
    const nowMs = runtime.clock.exactMs();
    // rule: ended-grant-makes-no-lease
    if (nowMs >= grant.deadlineMs || this.#hasEnded(grant)) return this.#refuse(grant);
    this.#endOlder(grant);
    // A listener of those losses may have revoked this grant.
    if (grant.loss) return this.#refuse(grant);
    const held = new HeldGrant(grant, user, nowMs, options, this, renewer !== undefined);
    grant.listener = held;
    this.#byName.add(held);
    this.#heldGrants.push(held);
    renewer?.keep(grant, held.terms);
    if (held.dueMs < this.#timerMs) this.#arm();
    return held;
  }

  /** Sets the ttl of further renewals. */
  setTtl(held: HeldGrant, ttlMs: number): void {
    if (held.ttlMs === ttlMs) return;
    held.ttlMs = ttlMs;
    this.#store.renewer?.keep(held.grant, held.terms);
  }

  /**
   * Asks for a lease that this process may have itself, and may give back before or meanwhile. Then
   * null, in whatever order the store has the two: the release ends what was resumed as well, and
   * one without an answer is sent again.
   */
  async resume<T>(
    owner: string,
    ask: () => Promise<Grant | null>,
    keep: (grant: Grant) => T | null,
  ): Promise<T | null> {
    if (this.#isGivenBack(owner)) return null;
    const grant = await ask();
    // Nothing may come between this look and `keep`: a release would end the new lease unnoticed.
    if (grant && !this.#isGivenBack(owner)) return keep(grant);
    if (grant) this.#giveBack(grant);
    return null;
  }

  /** Forgets a grant that its user has released or lost. */
  drop(held: HeldGrant): void {
    held.isLive = false;
    if (!held.isDetached) this.#noteGivenBack(held.grant, held.ttlMs);
    this.#heldGrants.remove(held);
    held.grant.listener = null;
    this.#byName.remove(held);
  }

  /** Another process may renew the grant from now on; here it ends at its present deadline. */
  detach(held: HeldGrant): void {
    held.detach();
    this.#store.detach(held.grant);
    this.#heldGrants.update(held);
    if (held.dueMs < this.#timerMs) this.#arm();
  }

  /** Ends the grant if its deadline has passed; returns whether it is still held. */
  check(held: HeldGrant): boolean {
    if (held.isLive) this.#store.renewer?.catchUp(held.grant);
    // rule: held-by-the-clock
    if (held.isLive && this.#store.runtime.clock.exactMs() >= held.deadlineMs) {
      this.#end(held, held.loss);
    }
    return held.isLive;
  }

  /** Renews at once, with a longer or the same ttl. */
  async renew(held: HeldGrant, ttlMs: number): Promise<Renewal> {
    const leastMs = Math.max(this.#store.traits.minTtlMs, 2 * held.graceMs + 1);
    this.setTtl(held, checkDuration("ttlMs", ttlMs, leastMs));
    const [renewal] = await this.#send([held]);
    return present(renewal, "a store answers every renewal");
  }

  /** Ends all timers once the releases of lost grants are answered or given up. */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#timerMs = Number.POSITIVE_INFINITY;
    await this.#cleanups.settled();
  }

  #noteGivenBack({ claim: { owner, transferable, ttlMs } }: Grant, renewedMs: number): void {
    if (!transferable) return;
    const nowMs = this.#store.runtime.clock.nowMs();
    if (this.#givenBack.size >= this.#sweepSize) {
      for (const [owner, untilMs] of this.#givenBack) {
        if (untilMs <= nowMs) this.#givenBack.delete(owner);
      }
      this.#sweepSize = Math.max(MIN_SWEEP_SIZE, 2 * this.#givenBack.size);
    }
    // A renewal under way may still give it one more ttl.
    const untilMs = nowMs + 2 * Math.max(ttlMs, renewedMs, CLEANUP_MS);
    this.#givenBack.set(owner, Math.max(untilMs, this.#givenBack.get(owner) ?? 0));
  }

  #isGivenBack(owner: string): boolean {
    return this.#store.runtime.clock.nowMs() < (this.#givenBack.get(owner) ?? 0);
  }

  /**
   * Whether the store has ended the grant before it was kept: it said so, or granted a newer one.
   */
  #hasEnded(grant: Grant): boolean {
    if (grant.loss) return true;
    return this.#byName.at(grant.claim).some((other) => {
      return other.token > grant.token && !fitTogether(grant, other.grant);
    });
  }

  /** Also ends a lease of this process that has the same owner: the release ends both. */
  #refuse(grant: Grant): null {
    for (const older of this.#byName.at(grant.claim)) {
      if (isSame(older.grant, grant)) this.#end(older, grant.loss ?? MISSING);
    }
    this.#giveBack(grant);
    return null;
  }

  /** A new grant proves that the store has ended all older ones that exclude it. */
  #endOlder(grant: Grant): void {
    for (const older of this.#byName.at(grant.claim)) {
      const isOver = older.token < grant.token && !fitTogether(older.grant, grant);
      // rule: newer-grant-ends-the-older
      if (isOver && this.check(older)) this.#end(older, REPLACED);
      if (isSame(older.grant, grant)) this.#handOver(older);
    }
  }

  /** This process has resumed the lease: the store tells of its end only to the new held grant. */
  #handOver(older: HeldGrant): void {
    if (!older.isLive) return;
    if (!older.isDetached) this.detach(older);
    this.#end(older, RESUMED);
  }

  #arm(): void {
    const next = this.#heldGrants.peek();
    if (!next) return;
    const { clock, timers } = this.#store.runtime;
    this.#timer?.cancel();
    const nowMs = clock.nowMs();
    // rule: sleep-of-the-machine-is-noticed
    const delayMs = Math.min(Math.max(1, next.dueMs - nowMs), MAX_NAP_MS);
    this.#timerMs = nowMs + delayMs;
    this.#timer = timers.after(delayMs, () => this.#tick());
  }

  #tick(): void {
    this.#timerMs = Number.POSITIVE_INFINITY;
    const nowMs = this.#store.runtime.clock.exactMs();
    const first = this.#heldGrants.peek();
    if (first && first.dueMs > nowMs) return this.#arm();
    const batch: HeldGrant[] = [];
    const unanswered: HeldGrant[] = [];
    for (let held = this.#heldGrants.peek(); held; held = this.#heldGrants.peek()) {
      if (held.dueMs > nowMs && !isDueAlong(held, nowMs)) break;
      this.#store.renewer?.catchUp(held.grant);
      if (!held.isLive) continue;
      // rule: no-renewal-after-the-deadline
      if (nowMs >= held.deadlineMs) {
        this.#end(held, held.loss);
        continue;
      }
      if (nowMs >= held.warningMs && held.warn()) this.#warn(held);
      if (held.renews && isDueAlong(held, nowMs)) {
        if (batch.length === MAX_BATCH) break;
        batch.push(held);
        if (!held.isUnanswered) held.askedMs = nowMs;
        // If this timer is late, the answer may be unread because the event loop was blocked.
        else if (nowMs < held.renewMs + retryAfterMs(held.ttlMs)) unanswered.push(held);
        held.isUnanswered = true;
        held.renewMs = nowMs + repeatAfterMs(held.warningMs - nowMs, held.ttlMs);
      }
      this.#replan(held);
    }
    if (batch.length > 0) void this.#send(batch);
    this.#arm();
    if (unanswered.length > 0) void this.#reportSilence(unanswered);
  }

  async #send(batch: readonly HeldGrant[]): Promise<readonly Renewal[]> {
    const { clock } = this.#store.runtime;
    const sentMs = clock.nowMs();
    const deadlines = batch.map(({ deadlineMs }) => deadlineMs);
    const requests = batch.map((held) => ++held.requests);
    let renewals: readonly Renewal[];
    try {
      renewals = await this.#store.renew(batch.map(({ grant, ttlMs }) => ({ grant, ttlMs })));
    } catch (error) {
      renewals = batch.map(() => ({ type: "unknown", error }));
    }
    batch.forEach((held, index) => {
      const renewal = renewals[index];
      if (!held.isLive || !renewal) return;
      const beforeMs = present(deadlines[index], "every grant has a deadline");
      const request = present(requests[index], "every request has a number");
      this.#onRenewal(held, renewal, { request, sentMs, beforeMs });
    });
    return renewals;
  }

  /** `beforeMs`: its deadline when the renewal was sent. */
  #onRenewal(
    held: HeldGrant,
    renewal: Renewal,
    { request, sentMs, beforeMs }: { request: number; sentMs: number; beforeMs: number },
  ): void {
    // rule: unknown-is-not-lost
    if (renewal.type === "ended") return this.#end(held, MISSING);
    const isRenewed = renewal.type === "renewed";
    if (request <= held.answered) return this.#onCopy(held, isRenewed, sentMs);
    held.isUnanswered = false;
    const { clock } = this.#store.runtime;
    // rule: renewals-come-in-time
    held.renewMs = isRenewed ? held.renewalDueMs(sentMs) : clock.nowMs() + retryAfterMs(held.ttlMs);
    if (held.hasRenewer) held.renewMs = Number.POSITIVE_INFINITY;
    this.#replan(held);
    if (held.dueMs < this.#timerMs) this.#arm();
    if (isRenewed) {
      held.answered = held.requests;
      held.user?.onRenewal(this.#report(held, "renewed", { beforeMs }));
    } else this.#reportFailure(held, request, renewal.error);
  }

  /** A copy of a renewal that was answered before. If it was sent later, it renewed for longer. */
  #onCopy(held: HeldGrant, isRenewed: boolean, sentMs: number): void {
    if (!isRenewed || held.isUnanswered) return;
    held.renewMs = Math.max(held.renewMs, held.renewalDueMs(sentMs));
    this.#replan(held);
  }

  /** Reports grants whose renewal was just repeated; asks the store once for the reason. */
  async #reportSilence(held: readonly HeldGrant[]): Promise<void> {
    const silences = held.map((held) => ({ held, request: held.requests - 1 }));
    const askedMs = Math.min(...held.map((held) => held.askedMs));
    // A held lease must not keep the process alive.
    const error = await explain(this.#store, this.#silence(askedMs), EXPLAIN_MS, false);
    for (const { held, request } of silences) {
      // A listener may end any grant.
      if (held.isLive && held.isUnanswered) this.#reportFailure(held, request, error);
    }
  }

  #silence(askedMs: number): StoreError {
    const silentMs = Math.round(this.#store.runtime.clock.nowMs() - askedMs);
    const message = `The store has not answered the renewal for ${silentMs} ms.`;
    return new StoreError(message, { outcome: "unknown" });
  }

  /** Reports the failure of each request once. */
  #reportFailure(held: HeldGrant, request: number, error: unknown): void {
    if (request <= held.reported) return;
    held.reported = request;
    held.user?.onRenewal(this.#report(held, "failed", { error }));
  }

  #report(
    { deadlineMs: afterMs }: HeldGrant,
    outcome: RenewalReport["outcome"],
    { beforeMs = afterMs, error }: { beforeMs?: number; error?: unknown } = {},
  ): RenewalReport {
    const report = { outcome, atMs: this.#store.runtime.clock.nowMs(), beforeMs, afterMs };
    return error === undefined ? report : { ...report, error };
  }

  #warn(held: HeldGrant): void {
    // The store's renewer no longer has a detached grant.
    if (!held.isDetached) this.#store.renewer?.keep(held.grant, held.terms);
    held.user?.onWarning();
  }

  #replan(held: HeldGrant): void {
    held.plan();
    this.#heldGrants.update(held);
  }

  #end(held: HeldGrant, loss: Loss): void {
    held.grant.end(loss);
    // A store may have made a grant that tells nobody.
    if (held.isLive) this.onEnd(held, loss);
  }

  /** Every end of a kept grant comes here, whoever found out: see `Grant.end`. */
  onEnd(held: HeldGrant, { reason, detail: told }: Loss): void {
    const detail = cutReason(told);
    // The thread of the store resumed it: the new grant is of the same owner.
    if (reason === RESUMED.reason && told === RESUMED.detail) held.detach();
    this.drop(held);
    // The last request was not answered before the deadline.
    if (reason === "expired" && held.isUnanswered) {
      this.#reportFailure(held, held.requests, this.#silence(held.askedMs));
    }
    if (held.isDetached) return held.user?.onLost(reason, detail);
    this.#giveBack(held.grant);
    // rule: loss-is-told
    held.user?.onLost(reason, detail);
  }

  /**
   * Releases a grant that has ended here: the store may still count it as held because of a maximum
   * or a slower clock. The next waiter gets the lock before a caller of this process queues again.
   */
  #giveBack(grant: Grant): void {
    this.#noteGivenBack(grant, 0);
    void this.#cleanups.add(releaseIn(this.#store, grant, CLEANUP_MS));
  }
}

/** An unanswered renewal does not join the batch of others before it is due. */
function isDueAlong(held: HeldGrant, nowMs: number): boolean {
  const alongMs = held.isUnanswered ? 0 : held.ttlMs / ALONG_PART;
  return held.renews && held.renewMs <= nowMs + alongMs;
}

function fitTogether(a: Grant, b: Grant): boolean {
  return fits(joined(VACANT, a.claim), b.claim);
}

/** Whether the store gave this process the same grant twice. */
function isSame(a: Grant, b: Grant): boolean {
  return a.token === b.token && a.claim.owner === b.claim.owner;
}
