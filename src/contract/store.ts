import type { LossReason, StoreError } from "../errors/index.js";
import type { Mode } from "../rules/fits.js";
import type { Space } from "../rules/name.js";
import type { Runtime } from "../time/runtime.js";
import type { Examination, ExamineRequest } from "./examination.js";

/** A small JSON object that describes a holder or a waiter; `inspect` and errors show it. */
export type Meta = Readonly<Record<string, unknown>>;

/** The abilities of a store; the conformance kit picks its cases by them. */
export interface Traits {
  /** How far a lock excludes: one process, one machine, or all clients that reach the store. */
  readonly scope: "process" | "machine" | "network";
  /** The modes that the store grants; without `shared` there is no read side and no semaphore. */
  readonly modes: readonly Mode[];
  /** Waiters are served in the order in which they came. */
  readonly fifo: boolean;
  /** A grant can reserve several tokens, so that local waiters may take turns on it. */
  readonly tokenSpan: boolean;
  /** A lease can be handed to another process. */
  readonly transferable: boolean;
  /** `release` can leave a mark, as `once` needs it. */
  readonly marks: boolean;
  /**
   * A release that was called before an acquire never makes that acquire busy, even if the release
   * is not answered yet. Only then does `release: "sent"` not wait for the answer. Default false.
   */
  readonly ordersReleases?: boolean;
  /** The shortest `ttlMs` that the store can keep; shorter ones are refused. */
  readonly minTtlMs: number;
  /** Why the store has no shared locks; the error for a call that asks for one says it. */
  readonly exclusiveBecause?: string;
}

/** The request of one acquisition. */
export interface Claim {
  /** Tells a lock from an election and a once of the same name. */
  readonly space: Space;
  /** Any well-formed text of up to 512 bytes. */
  readonly name: string;
  /** Random and used once: the store knows a repeated request by it. */
  readonly owner: string;
  /** Exclusive for a mutex, shared for readers and semaphores. */
  readonly mode: Mode;
  /** How many permits of a semaphore; 1 for all other locks. */
  readonly weight: number;
  /** The limit of the semaphore; `Number.MAX_SAFE_INTEGER` for all other locks. */
  readonly limit: number;
  /** How long the store keeps the grant without a renewal. */
  readonly ttlMs: number;
  /** Shown by `inspect` while the claim waits or is granted. */
  readonly meta: Meta;
  /** How many tokens to reserve; more than 1 only where `traits.tokenSpan`. */
  readonly span: number;
  /** Another process may resume the lease by its handle. */
  readonly transferable: boolean;
  /** The lease must not share a session with other leases, which would keep it alive. */
  readonly ownSession: boolean;
  /** How long the store may stay silent before the acquisition fails. */
  readonly storeTimeoutMs: number;
  /**
   * The least time for which a new grant must be reliable: the store renews a grant with less
   * before it returns the grant. Default 0.
   */
  readonly minUsefulMs?: number;
}

/** A lock that the store granted. */
export interface Grant {
  /** Tells a grant from `Busy`. */
  readonly type: "granted";
  /** The claim that was granted; after a retry its owner may differ from the one asked with. */
  readonly claim: Claim;
  /** The fencing token: higher than that of every earlier grant of the name. */
  readonly token: bigint;
  /** How many tokens, from `token` on, are reserved for turns of local waiters. */
  readonly span: number;
  /**
   * The time, by the store's clock, until which this process may believe that it holds
   * the lock. The store keeps it up to date; it only ever moves on.
   */
  deadlineMs: number;
  /** The text by which the store finds this grant again from another process; null if none. */
  readonly locator: string | null;
  /** The store passed the lock straight on to this waiter when the last holder released it. */
  readonly isHandoff?: boolean;
  /** Hears what becomes of the grant. The client sets it while it keeps the grant. */
  listener: GrantListener | null;
  /** Why the grant has ended; null before that. */
  readonly loss: Loss | null;
  /**
   * Ends the grant: whoever learns that it has ended calls this, the store or the client. The first
   * call sets `loss`, tells the listener, and moves the deadline into the past; others do nothing.
   */
  end(loss: Loss): void;
}

/** Why a grant ended. */
export interface Loss {
  /** The reason that the holder is told. */
  readonly reason: LossReason;
  /** The reason of a revocation, or more words of the store; may be empty. */
  readonly detail: string;
}

/** The part of the client that keeps a grant. */
export interface GrantListener {
  /** The grant has ended although nobody here released it. */
  onEnd(loss: Loss): void;
  /** The store's renewer has renewed the grant, or got no answer yet. */
  onRenewal(report: RenewalReport): void;
}

/** The lock was not granted: it is held, or the work of a `once` is done. */
export interface Busy {
  /** Tells `Busy` from a grant. */
  readonly type: "busy";
  /** A holder in the way; null where the store does not know it. */
  readonly holder: HolderView | null;
  /** The mark of a `once` that is done; null where there is none. */
  readonly mark: MarkView | null;
  /**
   * The time until the store grants free locks again: it may have lost leases, which must expire
   * first. The caller gets a `StoreError` that says so. Default 0: it grants them.
   */
  readonly grantsInMs?: number;
}

/** The end of an acquisition. */
export type AcquireResult = Grant | Busy;

/** How long an acquisition may wait. It ends by its time, its caller's signal, or `close`. */
export interface Wait {
  /** When the wait ends at the latest, by the store's clock. */
  readonly untilMs: number;
  /** True once the wait is over: a grant that comes now must be given back. */
  readonly ended: boolean;
  /** Calls back once when the wait ends; at once when it has ended. */
  onEnd(listener: () => void): void;
  /**
   * Tells the caller the holder in the way and the number of waiters ahead, where known.
   * `grantsInMs`: as `Busy` has it.
   */
  report(holder: HolderView | null, ahead: number | null, grantsInMs?: number): void;
}

/** The answer to the renewal of one grant. */
export type Renewal =
  | { readonly type: "renewed"; readonly waiting: boolean }
  /** The grant is gone: the store has called its `end`, which told why. */
  | { readonly type: "ended" }
  /** The store did not answer, or not clearly: the renewal is repeated until the deadline. */
  | { readonly type: "unknown"; readonly error: unknown };

/** The times of a renewal, by the store's clock: it was answered, or was not yet. */
export interface RenewalReport {
  /** `failed`: no answer yet; it is tried again until the deadline. */
  readonly outcome: "renewed" | "failed";
  /** When that was known. */
  readonly atMs: number;
  /** The deadline without the renewal. */
  readonly beforeMs: number;
  /** The deadline with it. */
  readonly afterMs: number;
  /** The error of the store, where the renewal failed. */
  readonly error?: unknown;
}

/** How a grant is to be kept. */
export interface RenewalTerms {
  /** How long the store keeps the grant after each renewal. */
  readonly ttlMs: number;
  /** False: the grant is not renewed, and ends at its deadline. */
  readonly renew: boolean;
  /** Renewals stop this long before the deadline. */
  readonly graceMs: number;
  /** The grant ends at this time of the store's clock, renewed or not. */
  readonly endMs: number;
}

/**
 * Renews grants outside of the event loop of the caller, in a thread of its own. Where a store has
 * a renewer, its client sends no renewals, except for a caller that asks for one.
 */
export interface Renewer {
  /**
   * From now on the grant is kept on these terms; a further call changes them. `release` and
   * `detach` end it.
   */
  keep(grant: Grant, terms: RenewalTerms): void;
  /**
   * Ends the grant before it returns if the grant is known to be gone. The message that says so may
   * be waiting for an event loop that is blocked.
   */
  catchUp(grant: Grant): void;
}

/** One holder of a lock. */
export interface HolderView {
  /** The fencing token of its lease, as `revoke` takes it. */
  readonly token: bigint;
  /** Exclusive for a mutex or a writer, shared for readers and holders of permits. */
  readonly mode: Mode;
  /** How many permits of a semaphore it holds; 1 for all other locks. */
  readonly weight: number;
  /** The limit that it was granted under; null where it has none. */
  readonly limit: number | null;
  /** Its `meta`: `host`, `pid` and `label`, unless that process chose otherwise. */
  readonly meta: Meta;
  /** How long it has held the lock. */
  readonly heldMs: number;
  /** How long the store keeps its grant without a further renewal. */
  readonly remainingMs: number;
}

/** One waiter in the queue of a lock. */
export interface WaiterView {
  /** The mode that it asks for. */
  readonly mode: Mode;
  /** How many permits of a semaphore it asks for; 1 for all other locks. */
  readonly weight: number;
  /** The limit that it asks under; null where it has none. */
  readonly limit: number | null;
  /** Its `meta`: `host`, `pid` and `label`, unless that process chose otherwise. */
  readonly meta: Meta;
  /** How long it has been in the queue. */
  readonly waitedMs: number;
}

/** The mark that a finished `once` left in the store. */
export interface MarkView {
  /** The token of the run that finished; `revoke` with it removes the mark. */
  readonly token: bigint;
  /** The `meta` of the process that finished the work. */
  readonly meta: Meta;
  /** How long the work still counts as done. */
  readonly remainingMs: number;
}

/** The state of one lock, as the store saw it when asked. */
export interface LockView {
  /** Tells a lock from an election and a once of the same name. */
  readonly space: Space;
  /** The name of the lock. */
  readonly name: string;
  /** In the order of their tokens; empty where the lock is free. */
  readonly holders: readonly HolderView[];
  /** In the order of the queue; always empty in a store that knows no waiters. */
  readonly waiters: readonly WaiterView[];
  /** The mark of a `once` that is done; null where there is none. */
  readonly mark: MarkView | null;
}

/**
 * The place where locks live. A throw means "unknown", never "no". Every call must settle: within
 * the wait, the store time-out of its claim, or the time it is given.
 */
export interface Store {
  /** Shown in errors and events: `redis`, `file`. */
  readonly name: string;
  /** Shown in events. Locks of different namespaces never meet. Default: the empty one. */
  readonly namespace?: string;
  /** The abilities of this store. */
  readonly traits: Traits;
  /** The time and chance that this store runs by; deadlines of its grants are by its clock. */
  readonly runtime: Runtime;

  /**
   * Asks for a lock; `wait` null means not to wait. When the wait ends, the store leaves the queue
   * and resolves as busy. Unless this ends with a grant, nothing of the claim stays in the store.
   */
  acquire(claim: Claim, wait: Wait | null): Promise<AcquireResult>;
  /** Renews grants and moves their deadlines on; a throw means `unknown` for all of them. */
  renew(
    grants: readonly { readonly grant: Grant; readonly ttlMs: number }[],
  ): Promise<readonly Renewal[]>;
  /**
   * True when the grant was there. With `keep`, leaves a mark in its place. Settles within
   * `withinMs`, by a throw when the store could not be told: then the grant ends by its expiry.
   */
  release(
    grant: Grant,
    withinMs: number,
    keep?: { readonly ttlMs: number; readonly meta: Meta },
  ): Promise<boolean>;
  /** Continues a grant that another process made; null when it is gone. */
  resume(claim: Claim, token: bigint, locator: string | null): Promise<Grant | null>;
  /**
   * Another process may keep the grant from now on: this store forgets the grant and ends it only
   * by `release`.
   */
  detach(grant: Grant): void;
  /** Renews grants in a thread of its own; without it, the client sends the renewals. */
  readonly renewer?: Renewer;

  /** The holders, the waiters and the mark of one name; an empty view for an unused name. */
  inspect(space: Space, name: string): Promise<LockView>;
  /** A view of every name in use that begins with `prefix`. */
  list(space: Space, prefix: string): AsyncIterable<LockView>;
  /** Ends the grant that holds this token; false when none does. */
  revoke(space: Space, name: string, token: bigint, reason: string): Promise<boolean>;
  /**
   * The error of a call that may succeed later, with the reason why the store did not answer, where
   * the store can find it out. Called when the error is about to be thrown; it has a second.
   */
  explain?(error: StoreError): Promise<StoreError>;
  /**
   * Reads how the backend is configured, and judges it. It changes nothing, it settles within ten
   * seconds, and it throws only where the store cannot be reached: a check that could not be done
   * is a finding.
   */
  examine?(request: ExamineRequest): Promise<Examination>;
  /** Ends all waits and frees what the store opened itself. */
  close(): Promise<void>;
}
