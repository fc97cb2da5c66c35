import type { Grant, GrantListener, Loss, RenewalReport, RenewalTerms } from "../contract/store.js";
import type { LossReason } from "../errors/index.js";
import type { Options } from "../options/options.js";
import { renewAfterMs, retryAfterMs } from "../rules/renewal-pace.js";
import type { HeapItem } from "../time/heap.js";
import type { HeldLease, Turn } from "./lease.js";

/** The options that decide how a grant is renewed and when it ends. */
export type HeldGrantOptions = Pick<Options, "ttlMs" | "renew" | "graceMs" | "maxHoldMs">;

/**
 * A lease or a local queue that uses a held grant; it hears when the grant is about to end and when
 * it has ended.
 */
export interface GrantUser {
  /** The lease that uses the grant now. */
  readonly lease: HeldLease | null;
  /** `graceMs` are left and the grant is no longer renewed. */
  onWarning(): void;
  onLost(reason: LossReason, detail: string): void;
  /** The grant was renewed, or its renewal has no answer yet. */
  onRenewal(report: RenewalReport): void;
}

/** The lease renewer that keeps the held grant. */
export interface HeldGrantOwner {
  /** The grant has ended; called once, unless the held grant is dropped first. */
  onEnd(held: HeldGrant, loss: Loss): void;
}

/**
 * A grant that this process holds: its deadline, and when to renew, warn and stop. It outlives a
 * single lease if requests of this process take turns on it.
 */
export class HeldGrant implements HeapItem, Turn, GrantListener {
  readonly grant: Grant;
  readonly startMs: number;
  readonly #options: HeldGrantOptions;
  readonly #owner: HeldGrantOwner;
  /** The store's renewer sends the renewals, not the `LeaseRenewer`. */
  readonly hasRenewer: boolean;
  /** Null until the lease for a new grant is made. */
  user: GrantUser | null;
  renews: boolean;
  ttlMs: number;
  /** When the renewer has to look at it next. */
  dueMs = 0;
  /** When the next renewal is sent, unless an answer changes that. */
  renewMs: number;
  /** A renewal was sent and has not been answered. */
  isUnanswered = false;
  /** When the first request for that renewal was sent. */
  askedMs = 0;
  /** The number of requests sent, including repeated ones. */
  requests = 0;
  /** The last request that has been answered, by itself or by a copy. */
  answered = 0;
  /** The last request whose failure has been reported. */
  reported = 0;
  isLive = true;
  isDetached = false;
  heapIndex = -1;
  /** The next older held grant of the name, in the list of the lease renewer. */
  older: HeldGrant | undefined;
  #isWarned = false;

  constructor(
    grant: Grant,
    user: GrantUser | null,
    nowMs: number,
    options: HeldGrantOptions,
    owner: HeldGrantOwner,
    hasRenewer = false,
  ) {
    this.grant = grant;
    this.user = user;
    this.startMs = nowMs;
    this.#options = options;
    this.#owner = owner;
    this.renews = options.renew;
    this.ttlMs = options.ttlMs;
    this.hasRenewer = hasRenewer;
    this.renewMs = this.renewalDueMs(nowMs);
    this.plan();
  }

  onEnd(loss: Loss): void {
    this.#owner.onEnd(this, loss);
  }

  onRenewal(report: RenewalReport): void {
    this.user?.onRenewal(report);
  }

  /** The token of the first turn. */
  get token(): bigint {
    return this.grant.token;
  }

  /** The end of `maxHoldMs`: renewals extend the grant no further. */
  get endMs(): number {
    return this.startMs + this.#options.maxHoldMs;
  }

  get graceMs(): number {
    return this.#options.graceMs;
  }

  get deadlineMs(): number {
    // rule: hold-ends-at-its-maximum
    return Math.min(this.grant.deadlineMs, this.endMs);
  }

  get warningMs(): number {
    // rule: warning-before-the-deadline
    return this.deadlineMs - this.graceMs;
  }

  /**
   * When the renewal after one sent at `sentMs` is due. It is due sooner if the grant has less than
   * its ttl left, because it started so or the last renewal was for a shorter ttl.
   */
  renewalDueMs(sentMs: number): number {
    if (this.hasRenewer) return Number.POSITIVE_INFINITY;
    const restMs = this.grant.deadlineMs - this.graceMs - sentMs;
    const leastMs = retryAfterMs(this.ttlMs);
    // If that would be too late, half of the remaining time.
    const halfMs = leastMs < restMs ? Math.max(restMs / 2, leastMs) : restMs / 2;
    // rule: short-lease-is-renewed-sooner
    return sentMs + Math.min(renewAfterMs(this.ttlMs), halfMs);
  }

  /** The terms for the store's renewer. */
  get terms(): RenewalTerms {
    const { ttlMs, renews, graceMs, endMs } = this;
    return { ttlMs, renew: renews, graceMs, endMs };
  }

  /** The reason for its end if the deadline passes. */
  get loss(): Loss {
    const reason = this.endMs <= this.grant.deadlineMs ? "max_hold" : "expired";
    return { reason, detail: "" };
  }

  plan(): void {
    const endingMs = this.#isWarned ? this.deadlineMs : this.warningMs;
    this.dueMs = this.renews && this.renewMs < endingMs ? this.renewMs : endingMs;
  }

  detach(): void {
    this.isDetached = true;
    this.renews = false;
    this.plan();
  }

  /** Stops renewals and returns true the first time. */
  warn(): boolean {
    if (this.#isWarned) return false;
    this.#isWarned = true;
    this.renews = false;
    return true;
  }
}
