import type { HolderView } from "../contract/store.js";
import type { LossReason } from "../errors/index.js";
import type { Space } from "../rules/name.js";

/** The kind of lock that a call asked for. A resumed lease of a write side counts as a `mutex`. */
export type LockKind = "mutex" | "read" | "write" | "semaphore" | "election" | "once";

/** The common part of all lock events. Has no owner id and no handle, because events get logged. */
export interface LockEvent {
  /** The name of the lock. */
  readonly name: string;
  /** Separates locks, elections and onces that have the same name. */
  readonly space: Space;
  /** The name of the store, such as `redis`. */
  readonly store: string;
  /** The namespace of the store; empty where it has none. */
  readonly namespace: string;
}

/** The lock that a call asked for. */
export interface RequestEvent extends LockEvent {
  /** The kind of lock that the call asked for. */
  readonly kind: LockKind;
  /** How many permits of a semaphore; 1 for all other locks. */
  readonly weight: number;
  /** The limit of the semaphore; null for all other locks. */
  readonly limit: number | null;
}

/**
 * An event of one lease. On `holdfast:held` it means that the lease began, by an acquisition or
 * `resume`. A lease ends with a release, a loss or `detach`.
 */
export interface LeaseEvent extends RequestEvent {
  /** The fencing token of the lease, the same in all its events. */
  readonly token: bigint;
}

/** The context of the tracing channel `holdfast:acquire`. Complete when the acquisition ends. */
export interface AcquireEvent extends RequestEvent {
  /** How the acquisition ended. `busy`: the lock was held, and the call does not wait. */
  outcome?: "granted" | "busy" | "timeout" | "aborted" | "error";
  /** The time from the call to its end. */
  waitedMs?: number;
  /** The token of the lease, if it was granted. */
  token?: bigint;
  /** The holder that blocked the call when it was queued or refused; null if unknown. */
  holder?: HolderView | null;
  /** How many waiters were ahead when the call was queued; null if unknown. */
  ahead?: number | null;
  /**
   * A subscriber to `start` may set it, in the format of W3C Trace Context. The claim carries it in
   * its meta, so that a waiter finds the trace of the holder in its own event.
   */
  traceparent?: string;
}

/**
 * The context of the tracing channel `holdfast:run` around `run`, `tryRun`, `once` and `lead`, from
 * before the acquisition until after the release. Does not contain the value of the body.
 */
export interface RunEvent extends Omit<RequestEvent, "kind"> {
  /** The kind of lock; `all` for several locks together. */
  readonly kind: LockKind | "all";
  /** `not_run`: the lock was not acquired, or the work of a `once` was done. `failed`: it threw. */
  outcome?: "done" | "failed" | "lost" | "not_run";
  /** Set when the body starts, and again in each term of `lead`. A run of `all` has none. */
  token?: bigint;
  /**
   * A subscriber to `start` may set this to run the call in its own async context. The function
   * must call `run` immediately and return its promise.
   */
  around?: (run: () => Promise<void>) => Promise<void>;
}

/**
 * A renewal succeeded or failed. `failed` is published when the store refuses a try or is silent
 * for a quarter of the time left, once for each try. `renewed` is published once for all tries.
 */
export interface RenewEvent extends LeaseEvent {
  /** `failed`: not confirmed; Holdfast retries until the deadline. */
  readonly outcome: "renewed" | "failed";
  /** How long the lease can be relied on without a further renewal. */
  readonly remainingMs: number;
  /** How long the lease had left, without this renewal, when the renewal was answered. */
  readonly spareMs: number;
  /** How long the store keeps the lease after a renewal. */
  readonly ttlMs: number;
  /** The store's error, if the renewal failed. */
  readonly error?: unknown;
}

/** A lease was released. */
export interface ReleaseEvent extends LeaseEvent {
  /** The time from the grant to the release. */
  readonly heldMs: number;
  /** `failed`: the store did not confirm the release in time; the grant ends when it expires. */
  readonly outcome: "released" | "lost" | "failed";
  /** The store's error, if the release failed. */
  readonly error?: unknown;
}

/** A lease was detached. From now on the process that resumes it publishes its events. */
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

/** A waiter of this process got the lock directly from the previous holder. */
export interface HandoffEvent extends LeaseEvent {
  /** Whether the previous holder was in this process, so that the store was not asked. */
  readonly isLocal: boolean;
}

/** This process revoked a lease of any process. */
export interface RevokedEvent extends LockEvent {
  /** The token that was passed to `revoke`. */
  readonly token: bigint;
  /** The reason that was passed to `revoke`. */
  readonly reason: string;
}

/** The store skipped a message that no call waited for, because Holdfast did not write its data. */
export interface ForeignEvent {
  /** The name of the store, such as `redis`. */
  readonly store: string;
  /** The key, the row or the message that holds the data. */
  readonly where: string;
  /** Why the data cannot be read. */
  readonly error: unknown;
}

/** The store cannot push messages to this process, so waiters poll it. Published once per store. */
export interface PollingEvent {
  /** The name of the store, such as `postgres`. */
  readonly store: string;
  /** The namespace of the store; empty where it has none. */
  readonly namespace: string;
  /** The longest time between two polls. */
  readonly everyMs: number;
}

/** The server may break a guarantee of the store. Published once per store, at its first use. */
export interface WarningEvent {
  /** The name of the store, such as `etcd`. */
  readonly store: string;
  /** The namespace of the store; empty where it has none. */
  readonly namespace: string;
  /** The stable code of the warning. */
  readonly code: string;
  /** What happens to locks, and why. */
  readonly message: string;
  /** How to avoid it. */
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
