import type { LossReason } from "./errors.js";
import type { Space } from "./rules/name.js";

/** What every event says. Never an owner id or a handle: events end up in logs. */
export interface LeaseEvent {
  readonly name: string;
  readonly space: Space;
  readonly store: string;
  readonly token: bigint;
}

/** The context of `holdfast:acquire`, a tracing channel: filled in when the acquisition ends. */
export interface AcquireEvent {
  readonly name: string;
  readonly space: Space;
  readonly store: string;
  readonly kind: "exclusive" | "shared";
  outcome?: "granted" | "busy" | "timeout" | "aborted" | "error";
  waitedMs?: number;
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

export interface RevokedEvent extends LeaseEvent {
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
  acquire: "holdfast:acquire",
  renew: "holdfast:renew",
  release: "holdfast:release",
  lost: "holdfast:lost",
  handoff: "holdfast:handoff",
  revoked: "holdfast:revoked",
  foreign: "holdfast:foreign",
} as const;
