import type { LossReason, StoreError } from "../errors/index.js";
import type { Mode } from "../rules/fits.js";
import type { Space } from "../rules/name.js";
import type { Runtime } from "../time/runtime.js";
import type { Examination, ExamineRequest } from "./examination.js";

/** A small JSON object that describes a holder or a waiter; `inspect` and errors show it. */
export type Meta = Readonly<Record<string, unknown>>;

/** What a store can do. The conformance kit selects its cases by these traits. */
export interface Traits {
  /** Who is locked out: the same process, the same machine, or every client of the store. */
  readonly scope: "process" | "machine" | "network";
  /** The modes that the store grants. Read locks and semaphores need `shared`. */
  readonly modes: readonly Mode[];
  /** Waiters get the lock in the order in which they asked for it. */
  readonly fifo: boolean;
  /** A grant can reserve several tokens, so that local waiters can take turns on it. */
  readonly tokenSpan: boolean;
  /** Another process can take over a lease. */
  readonly transferable: boolean;
  /** `release` can leave a mark; `once` needs this. */
  readonly marks: boolean;
  /**
   * An acquire that follows a release never finds the lock still held by it, even if the release
   * has not been answered yet. Without this trait, `release: "sent"` waits for the answer. Default:
   * false.
   */
  readonly ordersReleases?: boolean;
  /** The shortest `ttlMs` that the store supports; shorter ones are rejected. */
  readonly minTtlMs: number;
  /** Why the store has no shared locks. Included in the error of a call that asks for one. */
  readonly exclusiveBecause?: string;
}

/** What one acquisition asks the store for. */
export interface Claim {
  /** Separates locks, elections and onces that have the same name. */
  readonly space: Space;
  /** Any well-formed string of up to 512 bytes. */
  readonly name: string;
  /** A random id, used once. The store recognizes repeated requests by it. */
  readonly owner: string;
  /** Exclusive for a mutex, shared for readers and semaphores. */
  readonly mode: Mode;
  /** How many permits to take from a semaphore; 1 for all other locks. */
  readonly weight: number;
  /** The limit of the semaphore; `Number.MAX_SAFE_INTEGER` for all other locks. */
  readonly limit: number;
  /** How long the store keeps the grant if it is not renewed. */
  readonly ttlMs: number;
  /** Shown by `inspect` while the claim waits or is granted. */
  readonly meta: Meta;
  /** How many tokens to reserve; more than 1 only if the store has `traits.tokenSpan`. */
  readonly span: number;
  /** Another process may resume the lease by its handle. */
  readonly transferable: boolean;
  /** The lease needs a separate session, because other leases would keep a shared one alive. */
  readonly ownSession: boolean;
  /** How long the store may stay silent before the acquisition fails. */
  readonly storeTimeoutMs: number;
  /**
   * How much time a new grant must have left. The store renews a grant that has less before it
   * returns it. Default: 0.
   */
  readonly minUsefulMs?: number;
}

/** A lock that the store granted. */
export interface Grant {
  /** Distinguishes a grant from `Busy`. */
  readonly type: "granted";
  /** The claim that was granted. Its owner differs from the requested one if the store retried. */
  readonly claim: Claim;
  /** The fencing token, higher than that of every earlier grant of the same name. */
  readonly token: bigint;
  /** How many tokens, starting at `token`, are reserved for local waiters to take turns. */
  readonly span: number;
  /**
   * When this process must stop relying on the lock, by the clock of `Store.runtime`. The store
   * keeps it up to date. It only moves forward, until the grant ends.
   */
  deadlineMs: number;
  /** Lets another process find this grant in the store; null if the store needs no locator. */
  readonly locator: string | null;
  /** The store handed the lock to this waiter directly when the previous holder released it. */
  readonly isHandoff?: boolean;
  /** Is notified about renewals and the end of the grant. Set by the client while it holds it. */
  listener: GrantListener | null;
  /** Why the grant ended; null until then. */
  readonly loss: Loss | null;
  /**
   * Ends the grant. The store or the client calls this, whichever learns first that the grant has
   * ended. The first call sets `loss`, notifies the listener, and moves the deadline into the past;
   * later calls do nothing.
   */
  end(loss: Loss): void;
}

/** Why a grant ended. */
export interface Loss {
  /** The reason that the holder sees. */
  readonly reason: LossReason;
  /** The reason given to `revoke`, or details from the store; may be empty. */
  readonly detail: string;
}

/** The part of the client that holds a grant. */
export interface GrantListener {
  /** Called when the grant has ended without a release by this client. */
  onEnd(loss: Loss): void;
  /** Called when the store's renewer renewed the grant, or failed to. */
  onRenewal(report: RenewalReport): void;
}

/** The lock was not granted: it is held, or the work of a `once` is done. */
export interface Busy {
  /** Distinguishes `Busy` from a grant. */
  readonly type: "busy";
  /** A holder that blocks the claim; null if unknown. */
  readonly holder: HolderView | null;
  /** The mark of a `once` that is done; null if there is none. */
  readonly mark: MarkView | null;
  /**
   * How long until the store grants free locks again. It may have lost leases, for example in a
   * restart, and waits until those have expired. The caller gets a `StoreError` that says so.
   * Default: 0.
   */
  readonly grantsInMs?: number;
}

/** The result of an acquisition. */
export type AcquireResult = Grant | Busy;

/** How long an acquisition may wait. A timeout, the caller's signal, or `close` ends the wait. */
export interface Wait {
  /** When the wait ends at the latest, by the clock of `Store.runtime`. */
  readonly untilMs: number;
  /** True once the wait has ended. A grant that arrives later must be released. */
  readonly ended: boolean;
  /** Calls the listener once when the wait ends, or immediately if it has ended. */
  onEnd(listener: () => void): void;
  /**
   * Tells the caller which holder blocks it and how many waiters are ahead, if known.
   * `grantsInMs` is as in `Busy`.
   */
  report(holder: HolderView | null, ahead: number | null, grantsInMs?: number): void;
}

/** The result of renewing one grant. */
export type Renewal =
  | { readonly type: "renewed"; readonly waiting: boolean }
  /** The grant has ended, and the store has called its `end` with the reason. */
  | { readonly type: "ended" }
  /** The store gave no usable answer. The client repeats the renewal until the deadline. */
  | { readonly type: "unknown"; readonly error: unknown };

/** Reports one renewal. All times are by the clock of `Store.runtime`. */
export interface RenewalReport {
  /** `failed`: the store has not confirmed it; the renewer retries until the deadline. */
  readonly outcome: "renewed" | "failed";
  /** When the outcome was known. */
  readonly atMs: number;
  /** The deadline before the renewal. */
  readonly beforeMs: number;
  /** The deadline after the renewal. */
  readonly afterMs: number;
  /** The store's error, if the renewal failed. */
  readonly error?: unknown;
}

/** How the renewer should renew a grant. */
export interface RenewalTerms {
  /** How long the store keeps the grant after each renewal. */
  readonly ttlMs: number;
  /** If false, the grant is not renewed and ends at its deadline. */
  readonly renew: boolean;
  /** Renewals stop this long before the deadline. */
  readonly graceMs: number;
  /** When the grant ends, renewed or not, by the clock of `Store.runtime`. */
  readonly endMs: number;
}

/**
 * Renews grants in a separate thread, so that a blocked event loop does not lose them. If a store
 * has a renewer, its client renews only when a caller asks for it.
 */
export interface Renewer {
  /**
   * Renews the grant on these terms until `release` or `detach`. Another call changes the terms.
   */
  keep(grant: Grant, terms: RenewalTerms): void;
  /**
   * Ends the grant, before returning, if the thread already knows that it is gone. Its message may
   * still be queued behind the work that blocked the event loop.
   */
  catchUp(grant: Grant): void;
}

/** One holder of a lock. */
export interface HolderView {
  /** The fencing token of its lease; pass it to `revoke`. */
  readonly token: bigint;
  /** Exclusive for a mutex or a writer, shared for readers and holders of permits. */
  readonly mode: Mode;
  /** How many permits of a semaphore it holds; 1 for all other locks. */
  readonly weight: number;
  /** The limit of the semaphore that it was granted under; null if there is none. */
  readonly limit: number | null;
  /** Its `meta`: `host`, `pid` and `label`, unless that process chose otherwise. */
  readonly meta: Meta;
  /** How long it has held the lock. */
  readonly heldMs: number;
  /** How long the store keeps its grant if it is not renewed again. */
  readonly remainingMs: number;
}

/** One waiter in the queue of a lock. */
export interface WaiterView {
  /** The mode that it asks for. */
  readonly mode: Mode;
  /** How many permits of a semaphore it asks for; 1 for all other locks. */
  readonly weight: number;
  /** The limit of the semaphore that it asks for; null if there is none. */
  readonly limit: number | null;
  /** Its `meta`: `host`, `pid` and `label`, unless that process chose otherwise. */
  readonly meta: Meta;
  /** How long it has been in the queue. */
  readonly waitedMs: number;
}

/** The mark that a finished `once` left in the store. */
export interface MarkView {
  /** The token of the run that finished; pass it to `revoke` to remove the mark. */
  readonly token: bigint;
  /** The `meta` of the process that finished the work. */
  readonly meta: Meta;
  /** How much longer the work counts as done. */
  readonly remainingMs: number;
}

/** The state of one lock when the store was asked. */
export interface LockView {
  /** Separates locks, elections and onces that have the same name. */
  readonly space: Space;
  /** The name of the lock. */
  readonly name: string;
  /** In the order of their tokens; empty if the lock is free. */
  readonly holders: readonly HolderView[];
  /** In the order of the queue; always empty if the store keeps no queue. */
  readonly waiters: readonly WaiterView[];
  /** The mark of a `once` that is done; null if there is none. */
  readonly mark: MarkView | null;
}

/**
 * Where locks are kept. An error means that the outcome is unknown, never "no". Every call must
 * settle within its wait, the `storeTimeoutMs` of its claim, or the time limit it is given.
 */
export interface Store {
  /** Shown in errors and events, such as `redis` or `file`. */
  readonly name: string;
  /** Shown in events. Locks in different namespaces are independent. Default: `""`. */
  readonly namespace?: string;
  /** What this store can do. */
  readonly traits: Traits;
  /** The clock, timers and random numbers that this store uses. Deadlines are by this clock. */
  readonly runtime: Runtime;

  /**
   * Asks for a lock; does not wait if `wait` is null. When the wait ends, the claim leaves the
   * queue and this resolves as busy. Unless this resolves with a grant, the claim leaves nothing
   * behind in the store.
   */
  acquire(claim: Claim, wait: Wait | null): Promise<AcquireResult>;
  /** Renews grants and extends their deadlines. An error means `unknown` for all of them. */
  renew(
    grants: readonly { readonly grant: Grant; readonly ttlMs: number }[],
  ): Promise<readonly Renewal[]>;
  /**
   * Releases a grant; returns false if it was already gone. With `keep`, leaves a mark in its
   * place. Settles within `withinMs`. If it throws, the release may not have reached the store, and
   * the grant then ends when it expires.
   */
  release(
    grant: Grant,
    withinMs: number,
    keep?: { readonly ttlMs: number; readonly meta: Meta },
  ): Promise<boolean>;
  /** Takes over a grant of another process; returns null if the grant is gone. */
  resume(claim: Claim, token: bigint, locator: string | null): Promise<Grant | null>;
  /**
   * Forgets the grant, because another process may take it over. From now on this store ends the
   * grant only by `release`.
   */
  detach(grant: Grant): void;
  /** Renews grants in a separate thread. If absent, the client sends the renewals. */
  readonly renewer?: Renewer;

  /** The holders, the waiters and the mark of one name; all empty if the name is not in use. */
  inspect(space: Space, name: string): Promise<LockView>;
  /** Lists every name in use that begins with `prefix`. */
  list(space: Space, prefix: string): AsyncIterable<LockView>;
  /** Ends the grant that has this token; returns false if there is none. */
  revoke(space: Space, name: string, token: bigint, reason: string): Promise<boolean>;
  /**
   * Adds to a retryable error why the store did not answer, if the store can find out. Called just
   * before the error is thrown, and given one second.
   */
  explain?(error: StoreError): Promise<StoreError>;
  /**
   * Reads the configuration of the backend and reports problems. Changes nothing and settles within
   * ten seconds. Throws only if the store cannot be reached; a check that could not run is a
   * finding.
   */
  examine?(request: ExamineRequest): Promise<Examination>;
  /** Ends all waits and closes what the store opened itself. */
  close(): Promise<void>;
}
