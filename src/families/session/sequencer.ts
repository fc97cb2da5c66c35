/**
 * The contract of a store that orders session-bound entries and lets clients watch them.
 *
 * A lock has a queue of entries. The store decides the order of a queue and never changes it: a new
 * entry goes to the end, and an entry only ever leaves. An entry belongs to a session, and leaves
 * at the latest when the store ends that session. An entry holds the lock when all entries up to it
 * may hold together. So an entry that a listing shows as holding goes on holding until it leaves.
 *
 * Every call settles within its `limitMs`. A throw means that the effect of the call is unknown,
 * except for a `StoreError` whose `outcome` is "not_applied". No call is answered by a guess.
 */
import type { Examination, ExamineRequest } from "../../contract/examination.js";
import type { Claim, Traits } from "../../contract/store.js";
import type { Request } from "../../rules/fits.js";
import type { Space } from "../../rules/name.js";
import type { Runtime } from "../../time/runtime.js";

/** Names a lock, and with it the queue of its entries. */
export interface LockId {
  /** The same name in two spaces is two locks. */
  readonly space: Space;
  /** As the caller wrote it. */
  readonly name: string;
}

/** A moment in the history of a store, such as a revision. Only the store can compare two. */
export interface Moment {
  /** Whether this moment lies before another one of the same store. */
  isBefore(other: Moment): boolean;
}

/** An entry in a queue, as the store lists it. */
export interface Entry extends Request {
  /** Names the entry within its queue. After the entry left, another may get the same id. */
  readonly id: string;
  /**
   * The fencing token: greater than that of every entry which was ever ahead of this one. 0 in a
   * listing without texts of a store that never uses an id twice, and would have to ask for it.
   */
  readonly token: bigint;
  /** The session that the entry ends with. */
  readonly session: string;
  /** The text that the owner wrote into the entry; null where the listing has no texts. */
  readonly text: string | null;
}

/** The mark that a finished `once` left in its queue. */
export interface ListedMark {
  /** The token of the entry that the mark replaced; `readMarkToken` finds it in the text. */
  readonly token: bigint;
  /** The session that the mark ends with. */
  readonly session: string;
  /** The text that `leave` was given. */
  readonly text: string;
}

/** A queue at one moment of the store. */
export interface Listing {
  /** The moment that the listing shows. */
  readonly moment: Moment;
  /** In the order of the queue: the place of an entry is its index. */
  readonly entries: readonly Entry[];
  /** Null where there is none. */
  readonly mark: ListedMark | null;
}

/** An entry of this process, from before it is asked for until it is known to be gone. */
export interface OwnEntry {
  /** The lock that the entry is for. */
  readonly lock: LockId;
  /** The acquisition that the entry is for. */
  readonly claim: Claim;
  /** The id that listings show, from the answer of `enter` on. */
  readonly id: string;
  /** The text that the entry is made with. */
  readonly text: string;
  /** Set by the store; 0 until the store has answered that the entry was made. */
  readonly token: bigint;
  /** Set by the family: the entry is not wanted any more, and must not be asked for again. */
  isWithdrawn: boolean;
}

/** The answer to `enter`. */
export type Entering =
  /** The entry is in this listing. */
  | { readonly type: "entered"; readonly listing: Listing }
  /** The entry was made at this moment, and the queue was not listed. */
  | { readonly type: "behind"; readonly moment: Moment }
  /**
   * The entry was not made: the queue is not empty, or has a mark. `mayStillArrive`: a late copy of
   * the request may still make it, so it has to be removed by `leave`.
   */
  | { readonly type: "refused"; readonly listing: Listing; readonly mayStillArrive: boolean }
  /** The store has ended the session. */
  | { readonly type: "gone" };

/** The answer to `prove`. */
export type Proof =
  /**
   * The store keeps the session for at least `ttlMs` from the moment at which the proof was asked
   * for. `missing`: the entries, of those asked about, that have left.
   */
  | {
      readonly type: "proven";
      readonly ttlMs: number;
      readonly missing: ReadonlySet<OwnEntry>;
    }
  /** The store has ended the session. */
  | { readonly type: "gone" };

/**
 * The case in which `enter` is called. `if_empty`: the caller does not wait, so the store may
 * refuse if the queue is not empty. `behind`: an entry of this process waits in the queue already,
 * so the caller needs no listing: the new entry does not hold before that one.
 */
export type EnterCase = "any" | "if_empty" | "behind";

/** Further things that `leave` is asked for. */
export interface LeaveOptions {
  /** Asks for the queue after the entry left, without texts. */
  readonly look?: boolean | undefined;
  /** Asks whether this entry of the same queue is there after the entry left. */
  readonly next?: OwnEntry | undefined;
  /** Leaves a mark in the same step, if the entry is there. */
  readonly mark?: { readonly ttlMs: number; readonly text: string } | undefined;
}

/** The answer to `leave`. */
export interface Leaving {
  /** The entry was there, and is removed. */
  readonly wasThere: boolean;
  /** The queue after the entry left; null where it was not asked for, or is not known. */
  readonly listing: Listing | null;
  /** A moment after the entry left, at which `next` was there; null where that is not known. */
  readonly nextAt: Moment | null;
}

/** A session with the store. */
export interface StoreSession {
  /**
   * False as soon as the store can no longer keep late copies of requests from making entries in
   * this session. The family then makes no new entries in it, and ends it with its last one.
   */
  readonly takesEntries: boolean;
  /** An entry that can be asked for by `enter`. Sends nothing. */
  makeEntry(claim: Claim, text: string): OwnEntry;
  /** The text by which `resumeSession` finds the session and the entry from another process. */
  locatorOf(entry: OwnEntry): string;
  /**
   * Makes the entry, unless it is there. It is not made where its queue has a mark. The family asks
   * for the entries of one queue one after the other.
   */
  enter(entry: OwnEntry, enterCase: EnterCase, limitMs: number): Promise<Entering>;
  /**
   * Removes the entry, also one whose `enter` was not answered. After an answer, no late copy of a
   * request makes the entry again, unless `takesEntries` is false.
   */
  leave(entry: OwnEntry, options: LeaveOptions, limitMs: number): Promise<Leaving>;
  /** Keeps the session alive and proves that the store keeps it. */
  prove(entries: readonly OwnEntry[], limitMs: number): Promise<Proof>;
  /** Replaces the text of the entry, if it is there. */
  write(entry: OwnEntry, text: string, limitMs: number): Promise<void>;
  /**
   * Moves an entry of another session to this one; false when the entry is gone. Absent where an
   * entry cannot change its session: a renewal for a longer time then lasts for the ttl of the
   * session that the entry is in.
   */
  adopt?(entry: OwnEntry, limitMs: number): Promise<boolean>;
  /** Ends the session with all its entries. */
  end(limitMs: number): Promise<void>;
}

/** A session that another process opened, and the entry of it that a locator names. */
export interface Resumed {
  /** The session. */
  readonly storeSession: StoreSession;
  /** The entry, with its token. */
  readonly entry: OwnEntry;
  /** A moment at which the entry was there. */
  readonly moment: Moment;
}

/**
 * The part of a queue that a waiter has to be told about. `entry`: that one entry left, or with
 * `orWritten` that its text was replaced. `leaving`: that any entry left.
 */
export type Obstacle =
  | { readonly type: "entry"; readonly id: string; readonly orWritten: boolean }
  | { readonly type: "leaving" };

/** News from a watch on a queue. */
export type QueueChange =
  /**
   * The watched part may have changed: list the queue to know. `moment`: a listing from then on
   * shows the change; null where the store does not tell: only a listing that is asked for after
   * this was told is certain to show it.
   */
  | { readonly type: "changed"; readonly moment: Moment | null }
  /**
   * Entries left, and the store tells of all of them in their order. `listing`: the one that the
   * watch began with, without the entries that have left. It lacks entries that came since, which
   * stand behind all of it, and a mark. `moment`: as above.
   */
  | { readonly type: "left"; readonly listing: Listing; readonly moment: Moment | null }
  /** Changes may have been missed, and the watch is over: list the queue and watch again. */
  | { readonly type: "broken" };

/** News from a watch on an entry of this process. */
export type OwnChange =
  /** The entry left, or is about to: `revoked` is the reason that a revoke gave, if it was one. */
  | { readonly type: "gone"; readonly revoked: string | null }
  /** The end of the entry may have been missed, and the watch is over: look and watch again. */
  | { readonly type: "broken" };

/** A watch that has been started. */
export interface Watch {
  /** Ends the watch: its listener is not called any more. */
  close(): void;
}

/** A watch on a queue. */
export interface QueueWatch extends Watch {
  /**
   * Lists the queue, without texts, as it was at the last change that this watch told, or at any
   * moment since. May be cheaper than `Sequencer.list`, and works after `close`.
   */
  list(limitMs: number): Promise<Listing>;
}

/** A store that orders session-bound entries and lets clients watch them. */
export interface Sequencer {
  /** Shown in errors and events. */
  readonly name: string;
  /** Shown in events. Locks of different namespaces never meet. Default: the empty one. */
  readonly namespace?: string;
  /** The abilities of the store. */
  readonly traits: Traits;
  /** The time and chance that the family and the store run by. */
  readonly runtime: Runtime;
  /** Why no server can be reached; null if one can, or if the reason is not known. */
  whyUnreachable?(): Promise<Error | null>;
  /** Opens a session that the store keeps for at least `ttlMs` after each proof. */
  openSession(ttlMs: number, limitMs: number): Promise<StoreSession>;
  /**
   * Finds the session and the entry that a locator names; null when either is gone, or when the
   * text is no locator.
   */
  resumeSession(locator: string, claim: Claim, limitMs: number): Promise<Resumed | null>;
  /** The queue as it was at a moment between the call and its answer. */
  list(lock: LockId, look: "plain" | "texts", limitMs: number): Promise<Listing>;
  /** Every queue in use whose name begins with `prefix`, with texts. */
  queues(space: Space, prefix: string, limitMs: number): Promise<ReadonlyMap<string, Listing>>;
  /** How long the store keeps each of these when their sessions fall silent. For views only. */
  remainingMs(kept: readonly (Entry | ListedMark)[], limitMs: number): Promise<readonly number[]>;
  /** Removes the entry or mark with this token, and tells the owner of an entry the reason. */
  revoke(lock: LockId, token: bigint, reason: string, limitMs: number): Promise<boolean>;
  /**
   * Tells of every change of the obstacle after the listing, however long ago that was: a change
   * between the listing and the start of the watch is told as soon as the watch has started. A
   * store whose watches start at the present compares the queue with the listing at that point. The
   * listener is never called before this returns, nor after `close`.
   */
  watchQueue(
    lock: LockId,
    obstacle: Obstacle,
    listing: Listing,
    listener: (change: QueueChange) => void,
  ): QueueWatch;
  /**
   * Tells when an entry of this process is gone that was there at `since`. The watch does not keep
   * the process alive. The listener is called as that of `watchQueue` is.
   */
  watchOwn(entry: OwnEntry, since: Moment, listener: (change: OwnChange) => void): Watch;
  /** As `Store.examine`. */
  examine?(request: ExamineRequest): Promise<Examination>;
  /** Frees what the store opened itself; all calls and watches under way are over. */
  close(): Promise<void>;
}
