/**
 * The messages between the dashboard and its page, as JSON. The page is compiled apart, with the
 * types of a browser, so this file imports only types that stand alone. Tokens are decimal text.
 */
import type { Examination } from "../contract/examination.js";

/** The same as `Space`, whose file needs the types of Node. */
export type LockSpace = "lock" | "election" | "once";

/** One line of the list of locks. */
export interface LockRow {
  readonly space: LockSpace;
  readonly name: string;
  /** `lock`, `shared`, `slots 2/3`, `election`, `once`. */
  readonly kind: string;
  /** The first holder, or the process that finished a once; empty where the lock is free. */
  readonly holder: string;
  readonly holders: number;
  readonly waiters: number;
  /** How long the first of the waiters has been in the queue; 0 without waiters. */
  readonly longestWaitMs: number;
  /** How long the first holder has held it; null without holders. */
  readonly heldMs: number | null;
  /** How long the store keeps the grant that ends first; null without holders. */
  readonly remainingMs: number | null;
  /** A renewal of a holder is late: less than half of its longest time is left. */
  readonly isLate: boolean;
}

/** All locks together, at one look. */
export interface Totals {
  readonly locks: number;
  readonly held: number;
  readonly waiters: number;
  /** Locks with waiters. */
  readonly contended: number;
  readonly longestWaitMs: number;
  /** Holders whose renewals are late. */
  readonly late: number;
  /** There are more locks than one look takes in. */
  readonly isPartial: boolean;
}

/** Some seconds of the last hour. */
export interface Point {
  /** The start, in milliseconds since 1970. */
  readonly at: number;
  readonly waiters: number;
  readonly contended: number;
  readonly longestWaitMs: number;
  /** Grants that were seen to begin. */
  readonly grants: number;
  /** Holders whose renewals were late. */
  readonly late: number;
  /** Leases that ended by their expiry, as the store showed them. */
  readonly expired: number;
  /** Leases that this dashboard revoked. */
  readonly revoked: number;
  /** Leases that this process lost, by reason. */
  readonly lost: Readonly<Record<string, number>>;
  /** Renewals of this process that failed. */
  readonly failedRenewals: number;
}

/** A holder or a waiter, as its meta describes it. */
export interface MetaView {
  readonly label: string;
  readonly host: string;
  readonly pid: string;
  /** All other fields of the meta, as text. */
  readonly more: readonly (readonly [key: string, text: string])[];
}

export interface HolderDetail extends MetaView {
  readonly token: string;
  readonly mode: string;
  readonly weight: number;
  readonly heldMs: number;
  readonly remainingMs: number;
  readonly isLate: boolean;
}

export interface WaiterDetail extends MetaView {
  readonly mode: string;
  readonly weight: number;
  readonly waitedMs: number;
}

/** A change of one lock between two looks. */
export interface Change {
  readonly at: number;
  /** `ended`: released, handed on or revoked. `expired`: it was not renewed in time. */
  readonly what: "granted" | "ended" | "expired" | "revoked";
  readonly token: string;
  readonly who: string;
}

/** One lock with all that is known of it. */
export interface LockDetail {
  readonly space: LockSpace;
  readonly name: string;
  readonly kind: string;
  /** The first of them; `holderCount` counts all. */
  readonly holders: readonly HolderDetail[];
  readonly holderCount: number;
  /** The first of them; `waiterCount` counts all. */
  readonly waiters: readonly WaiterDetail[];
  readonly waiterCount: number;
  readonly mark: (MetaView & { readonly token: string; readonly remainingMs: number }) | null;
  /** Newest first. */
  readonly changes: readonly Change[];
}

/** A lease of the process in which the dashboard runs. */
export interface LeaseRow {
  readonly name: string;
  readonly token: string;
  readonly state: string;
  readonly remainingMs: number;
}

/** The part of the locks that a page shows. */
export interface LockPage {
  readonly rows: readonly LockRow[];
  readonly offset: number;
  /** How many locks match the search. */
  readonly total: number;
}

/** The answer of the store to the last look. */
export interface StoreState {
  readonly is: "asked" | "here" | "away";
  /** Why the store is away; empty otherwise. */
  readonly problem: string;
  /** Since when, in milliseconds since 1970. */
  readonly since: number;
}

/** One message of the live stream. */
export interface LiveMessage {
  readonly title: string;
  readonly actor: string;
  readonly mayRevoke: boolean;
  /** The time of the last look that the store answered; 0 before the first. */
  readonly at: number;
  readonly store: StoreState;
  readonly totals: Totals;
  /** Points that are new or have changed since the last message. */
  readonly points: readonly Point[];
  readonly page?: LockPage;
  /** Null until the lock was looked at. */
  readonly lock?: LockDetail | null;
  readonly leases?: readonly LeaseRow[];
}

/** The body of a request to revoke a lease. */
export interface RevokeRequest {
  readonly space: LockSpace;
  readonly name: string;
  readonly token: string;
  readonly reason: string;
}

/** The answer to it. */
export interface RevokeAnswer {
  readonly outcome: "revoked" | "not_held";
  /** The second line of the audit was taken. */
  readonly isAudited: boolean;
}

/** The answer of the doctor, and when it was given. */
export interface FindingsAnswer {
  readonly at: number;
  readonly examination: Examination;
}

/** The answer to a request that failed. */
export interface FailureAnswer {
  readonly error: string;
}
