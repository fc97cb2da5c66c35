import type { LossReason } from "./errors.js";
import type { Space } from "./rules/name.js";
import type { HolderView } from "./store.js";

/** The kind of lock that a call asked for. A resumed lease of a write side counts as a `mutex`. */
export type LockKind = "mutex" | "read" | "write" | "semaphore" | "election" | "once";

/** What every event says. Never an owner id or a handle: events end up in logs. */
export interface LockEvent {
  readonly name: string;
  readonly space: Space;
  readonly store: string;
  /** That of the store; empty where it has none. */
  readonly namespace: string;
}

/** A lock as a call asked for it. */
export interface RequestEvent extends LockEvent {
  readonly kind: LockKind;
  readonly weight: number;
  /** Null where there is none. */
  readonly limit: number | null;
}

export interface LeaseEvent extends RequestEvent {
  readonly token: bigint;
}

/** The context of `holdfast:acquire`, a tracing channel: filled in until the acquisition ends. */
export interface AcquireEvent extends RequestEvent {
  outcome?: "granted" | "busy" | "timeout" | "aborted" | "error";
  waitedMs?: number;
  token?: bigint;
  /** The holder in the way when the call was queued or refused; null where it is not known. */
  holder?: HolderView | null;
  /** How many waiters stood ahead when the call was queued; null where it is not known. */
  ahead?: number | null;
}

/**
 * The context of `holdfast:run`, a tracing channel around `run`, `tryRun`, `once` and `lead`: from
 * before the lock is asked for until it is given back. The value of the body is not in it.
 */
export interface RunEvent extends Omit<RequestEvent, "kind"> {
  readonly kind: LockKind | "all";
  /** `not_run`: the lock was not acquired, or the work of a `once` was done. `failed`: it threw. */
  outcome?: "done" | "failed" | "lost" | "not_run";
  /** Set when the body starts, by each term of `lead` anew; a run of `all` has none. */
  token?: bigint;
}

export interface RenewEvent extends LeaseEvent {
  /** `failed`: no answer yet; it is tried again until the deadline. */
  readonly outcome: "renewed" | "failed";
  readonly remainingMs: number;
  /** Why it failed. */
  readonly error?: unknown;
}

export interface ReleaseEvent extends LeaseEvent {
  readonly heldMs: number;
  /** `failed`: the store could not be told in time; the grant ends by its expiry. */
  readonly outcome: "released" | "lost" | "failed";
  readonly error?: unknown;
}

export interface LostEvent extends LeaseEvent {
  readonly reason: LossReason;
  readonly heldMs: number;
}

/** The lock went straight to the next waiter: within this process, or here from another one. */
export interface HandoffEvent extends LeaseEvent {
  /** Passed on within this process, without asking the store. */
  readonly isLocal: boolean;
}

export interface RevokedEvent extends LockEvent {
  readonly token: bigint;
  readonly reason: string;
}

/** A store sent, or holds, data that is not ours: it was passed over, and no caller was there. */
export interface ForeignEvent {
  readonly store: string;
  readonly where: string;
  readonly error: unknown;
}

/** Names of the channels on `node:diagnostics_channel`. */
export const channels = {
  run: "holdfast:run",
  acquire: "holdfast:acquire",
  renew: "holdfast:renew",
  release: "holdfast:release",
  lost: "holdfast:lost",
  handoff: "holdfast:handoff",
  revoked: "holdfast:revoked",
  foreign: "holdfast:foreign",
} as const;

/** Where a call was made: an `AsyncResource`, without the types of Node, which a user may lack. */
export interface CallContext {
  runInAsyncScope(run: () => void): void;
}
