import type { Request } from "./fits.js";

/** One instant of a store: the time its leases run by, and the wall clock its tokens follow. */
export interface Instant {
  /** The time that leases run by: it never steps. */
  readonly us: number;
  /** The wall clock, which tokens follow. */
  readonly wallUs: number;
}

interface Addressed {
  /** The name, as the store keeps it. */
  readonly key: string;
}

export interface Acquire extends Addressed, Request {
  readonly type: "acquire";
  readonly owner: string;
  readonly client: string;
  readonly ttlUs: number;
  /** How many tokens the grant reserves: one for each local turn it may serve. */
  readonly span: number;
  readonly meta: string;
  /** Whether to stand in the queue when the name is taken. */
  readonly enqueue: boolean;
  /** How long a handed-off grant waits for its confirm. */
  readonly offerUs: number;
  /** How often the client promises to send a heartbeat while it waits. */
  readonly heartbeatUs: number;
  /** Store time after which the command must not act: its sender does not wait any more. */
  readonly notAfterUs: number;
  /** The highest token the client knows of: a store that forgot its own learns it again. */
  readonly seenToken: number;
}

export interface Confirm extends Addressed {
  readonly type: "confirm";
  readonly owner: string;
}

export interface Renew extends Addressed {
  readonly type: "renew";
  readonly owner: string;
  /** The client that resumed the lease of another one: from now on it is told of a revocation. */
  readonly resumedBy?: string;
  readonly ttlUs: number;
  readonly notAfterUs: number;
  readonly seenToken: number;
}

export interface Release extends Addressed {
  readonly type: "release";
  readonly owner: string;
  /** Until when a late acquire of this owner is refused; 0 when none can be under way. */
  readonly tombstoneUs: number;
  /** Leaves the mark of a finished `once`. */
  readonly keep: { readonly ttlUs: number; readonly meta: string } | null;
}

export interface Heartbeat extends Addressed {
  readonly type: "heartbeat";
  readonly client: string;
}

export interface Inspect extends Addressed {
  readonly type: "inspect";
}

export interface Revoke extends Addressed {
  readonly type: "revoke";
  readonly token: number;
  readonly reason: string;
}

/** A command of the ledger, told apart by its `type`. */
export type Command = Acquire | Confirm | Renew | Release | Heartbeat | Inspect | Revoke;

export interface HolderEntry extends Request {
  readonly token: number;
  readonly span: number;
  readonly meta: string;
  readonly heldUs: number;
  readonly remainingUs: number;
}

export interface WaiterEntry extends Request {
  readonly meta: string;
  readonly waitedUs: number;
}

export interface MarkEntry {
  readonly token: number;
  readonly meta: string;
  readonly remainingUs: number;
}

/**
 * The holder that expires first, if any, and the time until it does: 0 or less for one that has
 * expired, when the store was not able to drop all of them at once. Then asking again helps.
 */
interface Blockage {
  readonly holder: HolderEntry | null;
  readonly dueUs: number;
}

/** A grant made by a handoff: in the offer window until its owner confirms it. */
export interface PushedGrant {
  /** The owner of the acquisition that was granted. */
  readonly owner: string;
  /** The first token of the grant. */
  readonly token: number;
  /** How many tokens the grant has, from `token` on. */
  readonly span: number;
  /** The store's time of the handoff. */
  readonly grantedUs: number;
  /** The store's time at which the offer lapses unless it is confirmed. */
  readonly expiryUs: number;
}

export type Granted = {
  readonly type: "granted";
  readonly token: number;
  readonly span: number;
  readonly remainingUs: number;
};
/** `ahead` is null where the place is the one it was told before. */
export type Queued = { readonly type: "queued"; readonly ahead: number | null } & Blockage;
export type Busy = { readonly type: "busy" } & Blockage;
export type Marked = { readonly type: "marked" } & MarkEntry;
/** `late`: after `notAfterUs`. `ended`: this owner was released or revoked before. */
export type Stale = { readonly type: "stale"; readonly reason: "late" | "ended" };
/**
 * Nothing was done. `terms`: a number of the command is out of bounds. `seen`: its token is more
 * than a year ahead of the store's clock. `tokens`: the last token is too high to count on from.
 */
export type Refused = {
  readonly type: "refused";
  readonly reason: "terms" | "seen" | "tokens";
};
export type Renewed = {
  readonly type: "renewed";
  readonly remainingUs: number;
  readonly waiting: boolean;
  readonly token: number;
  readonly span: number;
};
export type Gone = {
  readonly type: "gone";
  readonly reason: "missing" | "replaced" | "revoked";
  readonly detail: string;
};
/**
 * `offerUs`: the time until a grant handed off to the next waiter lapses unless confirmed; 0: none.
 * `more`: there are more waiters to serve: a heartbeat goes on.
 */
export type Released = {
  readonly type: "released";
  readonly held: boolean;
  readonly offerUs: number;
  readonly more: boolean;
};
/** `more`: there are more grants to tell, or more waiters to serve: the next heartbeat goes on. */
export type HeartbeatReply = {
  readonly type: "heartbeat";
  readonly grants: readonly PushedGrant[];
  readonly waiting: number;
  readonly more: boolean;
} & Blockage;
/** The state of one name. */
export type View = {
  readonly type: "view";
  readonly holders: readonly HolderEntry[];
  readonly waiters: readonly WaiterEntry[];
  readonly mark: MarkEntry | null;
};
export type Revoked = { readonly type: "revoked"; readonly done: boolean };

/** The reply of the ledger to one command, told apart by its `type`. */
export type Reply =
  | Granted
  | Queued
  | Busy
  | Marked
  | Stale
  | Refused
  | Renewed
  | Gone
  | Released
  | HeartbeatReply
  | View
  | Revoked;

/** The reply that belongs to a command. */
export type ReplyTo<C extends Command> = C extends Acquire
  ? Granted | Queued | Busy | Marked | Stale | Refused
  : C extends Confirm
    ? Renewed | Gone
    : C extends Renew
      ? Renewed | Gone | Stale | Refused
      : C extends Release
        ? Released
        : C extends Heartbeat
          ? HeartbeatReply
          : C extends Inspect
            ? View
            : Revoked;

/** A message of the store to a client that did not ask. */
export type Push = {
  readonly client: string;
  readonly key: string;
} & (
  | { readonly type: "granted"; readonly grant: PushedGrant }
  | {
      readonly type: "marked";
      readonly owner: string;
      readonly token: number;
      readonly meta: string;
    }
  | {
      readonly type: "revoked";
      readonly owner: string;
      readonly token: number;
      readonly reason: string;
    }
);

/** Sends a push; false when it is certain that the client cannot be reached. */
export type Emit = (push: Push) => boolean;

/** Whether an acquire or a renewal differs from the other one only in its key and its owner. */
export function hasSameTerms(one: Command, other: Acquire | Renew): one is Acquire | Renew {
  if (one.type === "acquire") {
    return (
      other.type === "acquire" &&
      one.notAfterUs === other.notAfterUs &&
      one.seenToken === other.seenToken &&
      one.ttlUs === other.ttlUs &&
      one.span === other.span &&
      one.enqueue === other.enqueue &&
      one.mode === other.mode &&
      one.weight === other.weight &&
      one.limit === other.limit &&
      one.offerUs === other.offerUs &&
      one.heartbeatUs === other.heartbeatUs &&
      one.client === other.client &&
      one.meta === other.meta
    );
  }
  return (
    one.type === "renew" &&
    other.type === "renew" &&
    !one.resumedBy &&
    !other.resumedBy &&
    one.notAfterUs === other.notAfterUs &&
    one.seenToken === other.seenToken &&
    one.ttlUs === other.ttlUs
  );
}
