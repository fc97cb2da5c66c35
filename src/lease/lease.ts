/// <reference lib="esnext.disposable" preserve="true" />

import type { Busy, Meta, RenewalReport } from "../contract/store.js";
import type { GrantHolder } from "../contract/store-grant.js";
import {
  LeaseLostError,
  type LossReason,
  lostSoon,
  releasedBefore,
  StoreError,
  UnsupportedError,
} from "../errors/index.js";
import type {
  CallContext,
  DetachedEvent,
  HandoffEvent,
  LeaseEvent,
  LockKind,
  LostEvent,
  ReleaseEvent,
  RenewEvent,
} from "../events/events.js";
import { describe, events, publishIn } from "../events/publish.js";
import type { Options } from "../options/options.js";
import { encodeHandle } from "./handle.js";
import type { GrantUser, HeldGrant } from "./held-grant.js";
import type { LeaseRenewer } from "./lease-renewer.js";

/**
 * The right that a holder has after a grant. It ends as `released` or `lost`.
 *
 * @example
 * const rates = await fetch("https://rates.example/today", { signal: lease.signal });
 * lease.assertHeld(); // by the clock, before a step that cannot be undone
 * await save({ rates: await rates.json(), fence: lease.token });
 */
export interface Lease extends AsyncDisposable {
  /** The name of the lock. */
  readonly name: string;
  /** The fencing number of this grant: hand it to whatever the work writes to. */
  readonly token: bigint;
  /** Aborts with a `LeaseLostError` at the deadline (minus `graceMs`) at the latest. */
  readonly signal: AbortSignal;
  /** By the clock, not by a flag: right even in the first statement after a blocked event loop. */
  readonly state: "held" | "released" | "lost";
  /**
   * A secret by which `resume` continues this lease in another process; null unless transferable.
   */
  readonly handle: string | null;
  /**
   * Gives the lease to the process that resumes it, and returns the handle for that. From then on
   * this object neither renews nor releases the lease.
   */
  detach(): string;
  /** How long the lease can be relied on without a further renewal. */
  remainingMs(): number;
  /** Throws `LeaseLostError` unless the lease is held at this moment. */
  assertHeld(): void;
  /**
   * Renews now, for `ttlMs` or for the same time again. Throws `LeaseLostError` or `StoreError`.
   */
  renew(ttlMs?: number): Promise<void>;
  /**
   * True when it was held until now; false when it had been lost. Never throws, never hangs. Has no
   * effect after `detach`.
   */
  release(): Promise<boolean>;
  /** For `JSON.stringify`: name, token as text, state, remaining time. Never the handle. */
  toJSON(): Record<string, unknown>;
}

/** The mark that the release of a finished `once` leaves. */
export interface OnceMark {
  readonly ttlMs: number;
  readonly meta: Meta;
}

/** Releases the leases that it made: `Releases`, or the local queue whose turn a lease is. */
export interface Releaser {
  /** True when the lease was held until now. Never throws. */
  giveBack(lease: HeldLease, keep: OnceMark | undefined): Promise<boolean>;
}

/** One use of a held grant: one turn, or the whole grant (then it is the `HeldGrant`). */
export interface Turn {
  readonly token: bigint;
  readonly startMs: number;
}

/** The call that acquired a lease, as shown in its events. */
export interface Origin {
  readonly kind: LockKind;
  readonly context?: CallContext | undefined;
  /** See `AcquireEvent.traceparent`; requests that take turns differ in it. */
  readonly traceparent?: string | undefined;
  /** See `AcquireOptions.release`. */
  readonly release?: Options["release"];
}

/** The result for a release listener that releases the lease again. */
const GIVEN_BACK = Promise.resolve(true);

/** The end of a request for a lease. */
export type LeaseResult = HeldLease | Busy;

export class HeldLease implements Lease, GrantUser, GrantHolder {
  /** The error of a release that the store did not confirm; a mark may be missing. */
  releaseError: unknown;
  readonly #held: HeldGrant;
  readonly #origin: Origin;
  readonly #leaseRenewer: LeaseRenewer;
  readonly #releaser: Releaser;
  readonly #turn: Turn;
  #released: Promise<boolean> | undefined;
  #loss: LeaseLostError | undefined;
  /** Set by `close`: work under the lease must stop although it was released in order. */
  #closed: LeaseLostError | undefined;
  #controller: AbortController | undefined;
  #isWarned = false;

  constructor(
    held: HeldGrant,
    origin: Origin,
    leaseRenewer: LeaseRenewer,
    releaser: Releaser,
    turn: Turn = held,
  ) {
    this.#held = held;
    this.#origin = origin;
    this.#leaseRenewer = leaseRenewer;
    this.#releaser = releaser;
    this.#turn = turn;
  }

  get name(): string {
    return this.#held.grant.claim.name;
  }

  get token(): bigint {
    return this.#turn.token;
  }

  get startMs(): number {
    return this.#turn.startMs;
  }

  get traceparent(): string | undefined {
    return this.#origin.traceparent;
  }

  /** Whether its release returns before the store answers, if the store keeps requests in order. */
  get isReleaseSent(): boolean {
    return this.#origin.release === "sent";
  }

  get type(): "granted" {
    return "granted";
  }

  /** Without turns, this lease uses the grant. */
  get lease(): HeldLease {
    return this;
  }

  get held(): HeldGrant {
    return this.#held;
  }

  get state(): "held" | "released" | "lost" {
    if (this.#released) return this.#loss ? "lost" : "released";
    return this.#isHeld() ? "held" : "lost";
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      this.#isHeld();
      this.#abort();
    }
    return this.#controller.signal;
  }

  get handle(): string | null {
    return this.#held.grant.claim.transferable ? encodeHandle(this.#held.grant) : null;
  }

  detach(): string {
    const { handle } = this;
    if (handle === null) {
      throw new UnsupportedError("Only a lease acquired with transferable: true can be detached.", {
        lockName: this.name,
      });
    }
    this.assertHeld();
    const wasDetached = this.#held.isDetached;
    this.#leaseRenewer.detach(this.#held);
    if (!wasDetached && events.detached.hasSubscribers) {
      const event: DetachedEvent = Object.assign(this.#about(), { heldMs: this.#heldMs() });
      events.detached.publish(event);
    }
    return handle;
  }

  remainingMs(): number {
    return this.#isHeld() ? Math.max(0, this.#held.deadlineMs - this.#nowMs()) : 0;
  }

  assertHeld(): void {
    if (this.#isHeld()) return;
    if (this.#loss ?? this.#closed) throw this.#loss ?? this.#closed;
    const { name, token } = this;
    throw releasedBefore({ lockName: name, store: this.#leaseRenewer.store.name, token });
  }

  async renew(ttlMs: number = this.#held.ttlMs): Promise<void> {
    if (this.#held.isDetached) {
      const message = "A detached lease is renewed by the process that resumes it.";
      throw new UnsupportedError(message, { lockName: this.name });
    }
    this.assertHeld();
    const renewal = await this.#leaseRenewer.renew(this.#held, ttlMs);
    if (renewal.type === "unknown") {
      throw new StoreError("The renewal was not answered; the lease goes on until its deadline.", {
        outcome: "unknown",
        cause: renewal.error,
        lockName: this.name,
      });
    }
    this.assertHeld();
  }

  toJSON(): Record<string, unknown> {
    const { name, state } = this;
    return { name, token: `${this.token}`, state, remainingMs: this.remainingMs() };
  }

  /** With `keep`, leaves a mark. A detached lease may be held by another process. */
  release(keep?: OnceMark): Promise<boolean> {
    if (this.#released) return this.#released;
    if (this.#held.isDetached) return Promise.resolve(this.#loss === undefined);
    const isHeld = this.#isHeld();
    // Set before the release, because a listener may read the state or release again.
    this.#released = isHeld ? GIVEN_BACK : Promise.resolve(false);
    if (isHeld) this.#released = this.#releaser.giveBack(this, keep);
    return this.#released;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** Called when the client closes: aborts the signal and releases the lease. */
  close(): Promise<boolean> {
    this.#closed = this.#lossBy("session_ended", { detail: "the Holdfast was closed" });
    this.#abort();
    return this.release();
  }

  /** Why work under the lease must not count: it was lost, or ended by `close`. */
  get loss(): LeaseLostError | undefined {
    if (!this.#released) this.#isHeld();
    return this.#loss ?? this.#closed;
  }

  publishRelease(outcome: ReleaseEvent["outcome"], error: unknown): void {
    this.releaseError = error;
    if (!events.release.hasSubscribers) return;
    const end = { heldMs: this.#heldMs(), outcome, error };
    const event: ReleaseEvent = Object.assign(this.#about(), end);
    events.release.publish(event);
  }

  publishHeld(): void {
    if (events.held.hasSubscribers) publishIn(this.#origin.context, events.held, this.#about());
  }

  onRenewal({ outcome, atMs, beforeMs, afterMs, error }: RenewalReport): void {
    if (!events.renew.hasSubscribers) return;
    const { ttlMs } = this.#held;
    const leftMs = (untilMs: number): number => Math.max(0, untilMs - atMs);
    const times = { remainingMs: leftMs(afterMs), spareMs: leftMs(beforeMs), ttlMs };
    const event: RenewEvent = Object.assign(this.#about(), { outcome, ...times });
    if (error !== undefined) Object.assign(event, { error });
    publishIn(this.#origin.context, events.renew, event);
  }

  publishHandoff(isLocal: boolean): void {
    if (!events.handoff.hasSubscribers) return;
    const event: HandoffEvent = Object.assign(this.#about(), { isLocal });
    publishIn(this.#origin.context, events.handoff, event);
  }

  onWarning(): void {
    this.#isWarned = true;
    this.#abort();
  }

  onLost(reason: LossReason, detail: string): void {
    if (this.#released) return;
    this.#loss = this.#lossBy(reason, { detail });
    if (events.lost.hasSubscribers && !this.#held.isDetached) {
      const end = { heldMs: this.#heldMs(), reason };
      const event: LostEvent = Object.assign(this.#about(), end);
      publishIn(this.#origin.context, events.lost, event);
    }
    this.#abort();
  }

  /** The release found nothing: the lease had ended unnoticed. */
  onMissing(): void {
    this.#loss = this.#lossBy("missing", {});
    this.#abort();
  }

  #isHeld(): boolean {
    if (this.#loss || this.#released) return false;
    return this.#leaseRenewer.check(this.#held);
  }

  #abort(): void {
    if (!this.#controller) return;
    const reason = this.#loss ?? this.#closed ?? (this.#isWarned ? this.#warning() : undefined);
    if (reason) this.#controller.abort(reason);
  }

  #warning(): LeaseLostError {
    const context = {
      lockName: this.name,
      store: this.#leaseRenewer.store.name,
      token: this.token,
    };
    return lostSoon(this.#held.loss.reason, this.#held.deadlineMs - this.#nowMs(), context);
  }

  /** Whether a holder with this token, as shown by the store or a local queue, is this lease. */
  isHolder(token: bigint): boolean {
    return token === this.token || token === this.#held.grant.token;
  }

  #lossBy(reason: LossReason, more: { detail?: string }): LeaseLostError {
    const store = this.#leaseRenewer.store.name;
    return new LeaseLostError(reason, { lockName: this.name, store, token: this.token, ...more });
  }

  #heldMs(): number {
    return this.#nowMs() - this.startMs;
  }

  #nowMs(): number {
    return this.#leaseRenewer.store.runtime.clock.nowMs();
  }

  #about(): LeaseEvent {
    // Not a spread, which was microseconds slower in a loop.
    const about = describe(this.#leaseRenewer.store, this.#origin.kind, this.#held.grant.claim);
    return Object.assign(about, { token: this.token });
  }

  // By this method `console.log` shows a lease, whose fields are private. It is no member of the
  // class: isolated declarations cannot name it there.
  static {
    Object.defineProperty(HeldLease.prototype, Symbol.for("nodejs.util.inspect.custom"), {
      value(this: object): unknown {
        // A proxy of a lease has no private fields: it is shown like any object.
        return #held in this ? this.toJSON() : this;
      },
    });
  }
}
