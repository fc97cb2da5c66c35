import type { HolderView } from "../contract/store.js";
import type { LossReason } from "../errors/index.js";
import type { Space } from "../rules/name.js";

/** The kind of lock that a call asked for. A resumed lease of a write side counts as a `mutex`. */
export type LockKind = "mutex" | "read" | "write" | "semaphore" | "election" | "once";

/** The part that all events of locks share. No owner id and no handle: events end up in logs. */
export interface LockEvent {
  /** The name of the lock. */
  readonly name: string;
  /** Tells a lock from an election and a once of the same name. */
  readonly space: Space;
  /** The name of the store, such as `redis`. */
  readonly store: string;
  /** The namespace of the store; empty where it has none. */
  readonly namespace: string;
}

/** A lock as a call asked for it. */
export interface RequestEvent extends LockEvent {
  /** The kind of lock that the call asked for. */
  readonly kind: LockKind;
  /** How many permits of a semaphore; 1 for all other locks. */
  readonly weight: number;
  /** The limit of the semaphore; null for all other locks. */
  readonly limit: number | null;
}

/**
 * An event in the life of one lease. `holdfast:held` carries it as it is: a lease began, by an
 * acquisition or by `resume`. It ends by a release, a loss or `detach`.
 */
export interface LeaseEvent extends RequestEvent {
  /** The fencing token of the lease: the same in all its events. */
  readonly token: bigint;
}

/** The context of `holdfast:acquire`, a tracing channel: filled in until the acquisition ends. */
export interface AcquireEvent extends RequestEvent {
  /** How the acquisition ended; missing until it did. `busy`: a call that does not wait. */
  outcome?: "granted" | "busy" | "timeout" | "aborted" | "error";
  /** The time from the call to its end. */
  waitedMs?: number;
  /** The token of the lease, where it was granted. */
  token?: bigint;
  /** The holder in the way when the call was queued or refused; null where it is not known. */
  holder?: HolderView | null;
  /** How many waiters stood ahead when the call was queued; null where it is not known. */
  ahead?: number | null;
  /**
   * A subscriber to `start` may set it, in the format of W3C Trace Context. The claim carries it in
   * its meta, so that a waiter finds the trace of the holder in its own event.
   */
  traceparent?: string;
}

/**
 * The context of `holdfast:run`, a tracing channel around `run`, `tryRun`, `once` and `lead`: from
 * before the lock is asked for until it is given back. The value of the body is not in it.
 */
export interface RunEvent extends Omit<RequestEvent, "kind"> {
  /** The kind of lock; `all` for several together. */
  readonly kind: LockKind | "all";
  /** `not_run`: the lock was not acquired, or the work of a `once` was done. `failed`: it threw. */
  outcome?: "done" | "failed" | "lost" | "not_run";
  /** Set when the body starts, by each term of `lead` anew; a run of `all` has none. */
  token?: bigint;
  /**
   * A subscriber to `start` may set it, to make a context of its own active in the run. It must
   * call `run` at once, and return its promise.
   */
  around?: (run: () => Promise<void>) => Promise<void>;
}

/**
 * A renewal was answered, or was not: `failed` comes as soon as the store refused it or was silent
 * for a quarter of the time left, and again with each further try. One `renewed` for all tries.
 */
export interface RenewEvent extends LeaseEvent {
  /** `failed`: no answer yet; it is tried again until the deadline. */
  readonly outcome: "renewed" | "failed";
  /** How long the lease can be relied on without a further renewal. */
  readonly remainingMs: number;
  /** How long the lease could have been relied on without this renewal, when it was answered. */
  readonly spareMs: number;
  /** How long the store keeps the lease after a renewal. */
  readonly ttlMs: number;
  /** The error of the store, where the renewal failed. */
  readonly error?: unknown;
}

/** A lease was given back. */
export interface ReleaseEvent extends LeaseEvent {
  /** The time from the grant to the release. */
  readonly heldMs: number;
  /** `failed`: the store could not be told in time; the grant ends by its expiry. */
  readonly outcome: "released" | "lost" | "failed";
  /** The error of the store, where the release failed. */
  readonly error?: unknown;
}

/** A lease was detached: from now on its end is the affair of the process that resumes it. */
export interface DetachedEvent extends LeaseEvent {
  /** The time from the grant to the call of `detach`. */
  readonly heldMs: number;
}

/** A lease ended before it was released, and was not detached. */
export interface LostEvent extends LeaseEvent {
  /** Why it ended. */
  readonly reason: LossReason;
  /** The time from the grant to the loss. */
  readonly heldMs: number;
}

/** The lock went straight to the next waiter: within this process, or here from another one. */
export interface HandoffEvent extends LeaseEvent {
  /** Passed on within this process, without asking the store. */
  readonly isLocal: boolean;
}

/** This process revoked a lease, of its own or of another process. */
export interface RevokedEvent extends LockEvent {
  /** The token that `revoke` was given. */
  readonly token: bigint;
  /** The reason that `revoke` was given. */
  readonly reason: string;
}

/** The store skipped data that Holdfast did not write, in a message that no call waited for. */
export interface ForeignEvent {
  /** The name of the store, such as `redis`. */
  readonly store: string;
  /** The key, the row or the message that holds the data. */
  readonly where: string;
  /** Why the data cannot be read. */
  readonly error: unknown;
}

/** The store cannot push messages to this process, so waiters ask it often. Told once per store. */
export interface PollingEvent {
  /** The name of the store, such as `postgres`. */
  readonly store: string;
  /** The namespace of the store; empty where it has none. */
  readonly namespace: string;
  /** The longest time between two questions of a waiter. */
  readonly everyMs: number;
}

/** The server can break a promise of the store. Published once per store, at its first use. */
export interface WarningEvent {
  /** The name of the store, such as `etcd`. */
  readonly store: string;
  /** The namespace of the store; empty where it has none. */
  readonly namespace: string;
  /** Names the warning: the same in every version. */
  readonly code: string;
  /** The effect on locks, and its cause. */
  readonly message: string;
  /** The way to avoid it. */
  readonly remedy: string;
}

/** Names of the channels on `node:diagnostics_channel`. */
export const channels = {
  run: "holdfast:run",
  acquire: "holdfast:acquire",
  held: "holdfast:held",
  renew: "holdfast:renew",
  release: "holdfast:release",
  lost: "holdfast:lost",
  detached: "holdfast:detached",
  handoff: "holdfast:handoff",
  revoked: "holdfast:revoked",
  foreign: "holdfast:foreign",
  polling: "holdfast:polling",
  warning: "holdfast:warning",
} as const;

/**
 * The async context of a call: an `AsyncResource`, declared without the types of Node, which a user
 * may not have installed.
 */
export interface CallContext {
  runInAsyncScope(run: () => void): void;
}
