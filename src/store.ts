import type { LossReason, StoreError } from "./errors.js";
import type { Mode } from "./rules/fits.js";
import type { Space } from "./rules/name.js";
import type { Port } from "./time/port.js";

/** A small JSON object, shown to whoever asks about a lock. */
export type Meta = Readonly<Record<string, unknown>>;

/** What a store can do; the conformance kit picks its cases by it. */
export interface Traits {
  /** Who is excluded: the locks of one process, one machine, or all that reach the store. */
  readonly scope: "process" | "machine" | "network";
  readonly modes: readonly Mode[];
  /** Waiters are served in the order in which they came. */
  readonly fifo: boolean;
  /** A grant can reserve several tokens, so that local waiters may take turns on it. */
  readonly tokenSpan: boolean;
  /** A lease can be handed to another process. */
  readonly transferable: boolean;
  /** `release` can leave a mark, as `once` needs it. */
  readonly marks: boolean;
  readonly minTtlMs: number;
  /** Why there are no shared locks, where there are none: whoever asks for one reads it. */
  readonly exclusiveBecause?: string;
}

/** One acquisition, as the store is asked for it. */
export interface Claim {
  readonly space: Space;
  readonly name: string;
  /** Random and used once: a repeated request is known by it. */
  readonly owner: string;
  readonly mode: Mode;
  readonly weight: number;
  readonly limit: number;
  readonly ttlMs: number;
  readonly meta: Meta;
  /** How many tokens to reserve; more than 1 only where `traits.tokenSpan`. */
  readonly span: number;
  /** Another process may resume the lease by its handle. */
  readonly transferable: boolean;
  /** The lease shares nothing with others of this client that would keep it alive (a session). */
  readonly alone: boolean;
  /** The longest silence of the store to endure. */
  readonly storeTimeoutMs: number;
  /**
   * A grant that can be relied on for no longer than this at first is of no use yet: the store
   * makes sure of more before it returns it. Default 0.
   */
  readonly leastMs?: number;
}

/** What the store granted. */
export interface Grant {
  readonly type: "granted";
  readonly claim: Claim;
  readonly token: bigint;
  readonly span: number;
  /**
   * By the store's own port, the time until which this process may believe that it holds the lock.
   * Kept by the store; it only ever moves on.
   */
  deadlineMs: number;
  /** The text by which the store finds this grant again from another process; null if none. */
  readonly locator: string | null;
  /** The store passed the lock straight on to this waiter when the last holder released it. */
  readonly isHandoff?: boolean;
}

/** Somebody else holds the lock, or the work of a `once` is done. */
export interface Busy {
  readonly type: "busy";
  readonly holder: HolderView | null;
  readonly mark: MarkView | null;
}

/** How long an acquisition may wait. It ends by its time, its caller's signal, or `close`. */
export interface Wait {
  readonly untilMs: number;
  readonly ended: boolean;
  /** Calls back once when the wait ends; at once when it has ended. */
  onEnd(listener: () => void): void;
  /** Tells the caller who is in the way, as far as the store knows. */
  report(holder: HolderView | null, ahead: number | null): void;
}

export type Renewal =
  | { readonly type: "renewed"; readonly waiting: boolean }
  | { readonly type: "gone"; readonly reason: LossReason; readonly detail: string }
  /** No answer, or none that tells: try again until the deadline. */
  | { readonly type: "unknown"; readonly error: unknown };

/** A lease that ended without the holder's doing. */
export interface GoneEvent {
  readonly type: "gone";
  readonly grant: Grant;
  readonly reason: LossReason;
  readonly detail: string;
}

export interface HolderView {
  readonly token: bigint;
  readonly mode: Mode;
  readonly weight: number;
  /** Null where there is none. */
  readonly limit: number | null;
  readonly meta: Meta;
  readonly heldMs: number;
  readonly remainingMs: number;
}

export interface WaiterView {
  readonly mode: Mode;
  readonly weight: number;
  readonly limit: number | null;
  readonly meta: Meta;
  readonly waitedMs: number;
}

/** What a finished `once` left behind. */
export interface MarkView {
  readonly token: bigint;
  readonly meta: Meta;
  readonly remainingMs: number;
}

/** The state of one lock, as the store saw it when asked. */
export interface LockView {
  readonly space: Space;
  readonly name: string;
  readonly holders: readonly HolderView[];
  readonly waiters: readonly WaiterView[];
  readonly mark: MarkView | null;
}

/**
 * Where locks live. A throw means "unknown", never "no". Every call must settle: within the wait,
 * the store time-out of its claim, or the time it is given.
 */
export interface Store {
  readonly name: string;
  /** Shown in events. Locks of different namespaces never meet. Default: the empty one. */
  readonly namespace?: string;
  readonly traits: Traits;
  /** The time and chance this store runs by; deadlines of its grants are in its clock. */
  readonly port: Port;

  /**
   * Asks for a lock; `wait` null means not to wait. When the wait ends, the store leaves the queue
   * and resolves as busy. However this ends but with a grant, nothing of the claim stays behind.
   */
  acquire(claim: Claim, wait: Wait | null): Promise<Grant | Busy>;
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
   * Another process may keep the grant from now on: the store forgets it here, and ends nothing of
   * it but by `release`.
   */
  detach(grant: Grant): void;
  /** One listener, set by the client that owns this store. */
  onEvent(listener: (event: GoneEvent) => void): void;

  inspect(space: Space, name: string): Promise<LockView>;
  list(space: Space, prefix: string): AsyncIterable<LockView>;
  /** Ends the grant that holds this token; false when none does. */
  revoke(space: Space, name: string, token: bigint, reason: string): Promise<boolean>;
  /**
   * The error of a call that may succeed later, with the reason why the store did not answer, where
   * the store can find it out. Called when the error is about to be thrown; it has a second.
   */
  explain?(error: StoreError): Promise<StoreError>;
  /** Ends all waits and frees what the store opened itself. */
  close(): Promise<void>;
}
