import type { Grant, RenewalReport, RenewalTerms } from "../contract/store.js";
import type { LossReason } from "../errors/index.js";
import type { Options } from "../options/options.js";
import { renewAfterMs, retryAfterMs } from "../rules/renewal-pace.js";
import type { HeapItem } from "../time/heap.js";
import type { HeldLease, Turn } from "./lease.js";

/** The options by which a grant is kept. */
export type HeldGrantOptions = Pick<Options, "ttlMs" | "renew" | "graceMs" | "maxHoldMs">;

/** Why a held grant is over; `detail` has the words of the store, if it said any. */
export interface Loss {
  readonly reason: LossReason;
  readonly detail: string;
}

/**
 * The user of a held grant, a lease or a local queue: it hears that the held grant will end, and
 * that it ended.
 */
export interface GrantUser {
  /** The lease that uses the held grant now. */
  readonly lease: HeldLease | null;
  /** `graceMs` are left; the held grant will not be renewed any more. */
  onWarning(): void;
  onLost(reason: LossReason, detail: string): void;
  /** The held grant was renewed, or its renewal has no answer yet. */
  onRenewal(report: RenewalReport): void;
}

/**
 * A grant as this process keeps it: until when it may be believed, and what the lease renewer does
 * for it. It outlives single leases where waiters of this process take turns on it.
 */
export class HeldGrant implements HeapItem, Turn {
  readonly grant: Grant;
  readonly startMs: number;
  readonly #options: HeldGrantOptions;
  /** The renewer of the store sends the renewals, not the lease renewer. */
  readonly hasRenewer: boolean;
  /** Null only until the lease for a new grant is made. */
  user: GrantUser | null;
  renews: boolean;
  ttlMs: number;
  /** When the lease renewer has to look at it next. */
  dueMs = 0;
  /** When the next renewal is to be sent, unless an answer moves it. */
  renewMs: number;
  /** A renewal was sent, and no answer to it has come yet. */
  isUnanswered = false;
  /** When the first request for that renewal was sent. */
  askedMs = 0;
  /** How many requests were sent; further ones for the same renewal are copies. */
  requests = 0;
  /** The requests up to this one are answered, by an answer to any copy. */
  answered = 0;
  /** The failure of the requests up to this one was reported. */
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
    hasRenewer = false,
  ) {
    this.grant = grant;
    this.user = user;
    this.startMs = nowMs;
    this.#options = options;
    this.renews = options.renew;
    this.ttlMs = options.ttlMs;
    this.hasRenewer = hasRenewer;
    this.renewMs = this.renewalDueMs(nowMs);
    this.plan();
  }

  /** The token of its first turn. */
  get token(): bigint {
    return this.grant.token;
  }

  /** Renewals go no further than this. */
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
   * When a renewal is due after one that was sent at `sentMs`. A grant may begin with less than its
   * ttl, and an answer may be to a shorter renewal: then the next one is due sooner.
   */
  renewalDueMs(sentMs: number): number {
    if (this.hasRenewer) return Number.POSITIVE_INFINITY;
    const restMs = this.grant.deadlineMs - this.graceMs - sentMs;
    const leastMs = retryAfterMs(this.ttlMs);
    // Where that would be too late, half of the rest is not.
    const halfMs = leastMs < restMs ? Math.max(restMs / 2, leastMs) : restMs / 2;
    // rule: short-lease-is-renewed-sooner
    return sentMs + Math.min(renewAfterMs(this.ttlMs), halfMs);
  }

  /** How a renewer keeps the grant. */
  get terms(): RenewalTerms {
    const { ttlMs, renews, graceMs, endMs } = this;
    return { ttlMs, renew: renews, graceMs, endMs };
  }

  /** Why the held grant is over when its time is over. */
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

  /** True the first time: from then on only the end is left. */
  warn(): boolean {
    if (this.#isWarned) return false;
    this.#isWarned = true;
    this.renews = false;
    return true;
  }
}
