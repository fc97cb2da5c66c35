/**
 * The contract of a store that orders session-bound entries and lets clients watch them.
 *
 * Each lock has a queue of entries. The store decides the order and never changes it: new entries
 * go to the end, and entries never move, they only leave. Each entry belongs to a session and
 * leaves at the latest when the store ends that session. An entry holds the lock if all entries up
 * to and including it may hold the lock together. So once a listing shows that an entry holds, it
 * holds until it leaves.
 *
 * Every call settles within its `limitMs`. If a call throws, its effect is unknown, unless the
 * error is a `StoreError` whose `outcome` is "not_applied". No call may answer with a guess.
 */
import type { Examination, ExamineRequest } from "../../contract/examination.js";
import type { Claim, Traits } from "../../contract/store.js";
import type { Request } from "../../rules/fits.js";
import type { Space } from "../../rules/name.js";
import type { Runtime } from "../../time/runtime.js";

/** Identifies a lock and its queue. */
export interface LockId {
  /** Locks of the same name in different spaces are different locks. */
  readonly space: Space;
  /** The name, as the caller wrote it. */
  readonly name: string;
}

/** A point in the history of a store, such as a revision. Only the store can compare two. */
export interface Moment {
  /** Whether this moment is earlier than another moment of the same store. */
  isBefore(other: Moment): boolean;
}

/** An entry in a queue, as the store lists it. */
export interface Entry extends Request {
  /** Unique in the queue. A later entry may get the same id after this one has left. */
  readonly id: string;
  /**
   * The fencing token, greater than that of every entry that was ever ahead of this one. A store
   * that never reuses ids may list 0 when it lists without texts, to save reading the token.
   */
  readonly token: bigint;
  /** The session whose end removes the entry. */
  readonly session: string;
  /** The text that the owner wrote into the entry; null in a listing without texts. */
  readonly text: string | null;
}

/** The mark that a finished `once` left in its queue. */
export interface ListedMark {
  /** The token of the entry that the mark replaced, read from the text by `readMarkToken`. */
  readonly token: bigint;
  /** The session whose end removes the mark. */
  readonly session: string;
  /** The text that was passed to `leave`. */
  readonly text: string;
}

/** The contents of a queue at one moment. */
export interface Listing {
  /** The moment that the listing shows. */
  readonly moment: Moment;
  /** The entries, in the order of the queue. */
  readonly entries: readonly Entry[];
  /** The mark of a finished `once`; null if there is none. */
  readonly mark: ListedMark | null;
}

/** An entry of this process, from before `enter` until it is known to be gone. */
export interface OwnEntry {
  /** The lock that the entry is for. */
  readonly lock: LockId;
  /** The acquisition that the entry is for. */
  readonly claim: Claim;
  /** The id in listings; final once `enter` has been answered. */
  readonly id: string;
  /** The text that the entry is created with. */
  readonly text: string;
  /** Set by the store; 0 until the store has confirmed that it made the entry. */
  readonly token: bigint;
  /** Set by the family when the entry is no longer wanted. `enter` must not make it after that. */
  isWithdrawn: boolean;
}

/** The result of `enter`. */
export type Entering =
  /** The entry is in this listing. */
  | { readonly type: "entered"; readonly listing: Listing }
  /** The entry was made at this moment; the queue was not listed. */
  | { readonly type: "behind"; readonly moment: Moment }
  /**
   * The entry was not made, because the queue is not empty or has a mark. If `mayStillArrive`, a
   * late copy of the request may still make the entry, so the caller must call `leave`.
   */
  | { readonly type: "refused"; readonly listing: Listing; readonly mayStillArrive: boolean }
  /** The store has ended the session. */
  | { readonly type: "gone" };

/** The result of `prove`. */
export type Proof =
  /**
   * The store keeps the session for at least `ttlMs`, measured from the call of `prove`. `missing`
   * holds those of the given entries that have left.
   */
  | {
      readonly type: "proven";
      readonly ttlMs: number;
      readonly missing: ReadonlySet<OwnEntry>;
    }
  /** The store has ended the session. */
  | { readonly type: "gone" };

/**
 * Shortcuts that `enter` may take. `if_empty`: the caller does not wait, so the store may refuse if
 * the queue is not empty. `behind`: another entry of this process is already waiting, so the new
 * one cannot hold yet, and the store need not list the queue.
 */
export type EnterCase = "any" | "if_empty" | "behind";

/** What `leave` does besides removing the entry. */
export interface LeaveOptions {
  /** Also lists the queue after the entry left, without texts. */
  readonly look?: boolean | undefined;
  /** Also checks that this entry of the same queue is still there after the removal. */
  readonly next?: OwnEntry | undefined;
  /** Replaces the entry, if it is there, by a mark in the same atomic step. */
  readonly mark?: { readonly ttlMs: number; readonly text: string } | undefined;
}

/** The result of `leave`. */
export interface Leaving {
  /** Whether the entry was there before it was removed. */
  readonly wasThere: boolean;
  /** The queue after the entry left; null if not requested or unknown. */
  readonly listing: Listing | null;
  /** A moment after the removal at which `next` was there; null if unknown. */
  readonly nextAt: Moment | null;
}

/** A session with the store. */
export interface StoreSession {
  /**
   * False once the store can no longer stop late copies of requests from making entries in this
   * session. The family then adds no entries and ends the session when its last entry leaves.
   */
  readonly takesEntries: boolean;
  /** Returns an entry for `enter`. Sends nothing. */
  makeEntry(claim: Claim, text: string): OwnEntry;
  /** Returns a text by which `resumeSession` in another process finds the session and entry. */
  locatorOf(entry: OwnEntry): string;
  /**
   * Makes the entry, unless it exists or the queue has a mark. The family calls this for one entry
   * of a queue at a time.
   */
  enter(entry: OwnEntry, enterCase: EnterCase, limitMs: number): Promise<Entering>;
  /**
   * Removes the entry, even if its `enter` was not answered. Once this resolves, no late copy of a
   * request makes the entry again, unless `takesEntries` is false.
   */
  leave(entry: OwnEntry, options: LeaveOptions, limitMs: number): Promise<Leaving>;
  /** Renews the session and confirms that the store still has it. */
  prove(entries: readonly OwnEntry[], limitMs: number): Promise<Proof>;
  /** Replaces the text of the entry, if it is there. */
  write(entry: OwnEntry, text: string, limitMs: number): Promise<void>;
  /**
   * Moves an entry from another session to this one; returns false if the entry is gone. Absent if
   * the store cannot move entries. Renewing with a longer ttl then extends the lease only by the
   * ttl of the session that the entry is in.
   */
  adopt?(entry: OwnEntry, limitMs: number): Promise<boolean>;
  /** Ends the session, which removes all its entries. */
  end(limitMs: number): Promise<void>;
}

/** A session that another process opened, and the entry that the locator names. */
export interface Resumed {
  /** The session. */
  readonly storeSession: StoreSession;
  /** The entry, with its token. */
  readonly entry: OwnEntry;
  /** A moment at which the entry was there. */
  readonly moment: Moment;
}

/**
 * What a waiter watches for. `entry`: one entry leaves or, with `orWritten`, its text is replaced.
 * `leaving`: any entry leaves.
 */
export type Obstacle =
  | { readonly type: "entry"; readonly id: string; readonly orWritten: boolean }
  | { readonly type: "leaving" };

/** An event of a watch on a queue. */
export type QueueChange =
  /**
   * What was watched may have changed; list the queue to find out. Listings of `moment` or later
   * show the change. If `moment` is null, only listings requested after this event are certain to.
   */
  | { readonly type: "changed"; readonly moment: Moment | null }
  /**
   * Entries left, and the store reports every entry that leaves, in order. `listing` is the one
   * that the watch started with, minus the entries that have left. It does not show a mark, nor
   * newer entries, which are all behind those it shows. `moment` is as above.
   */
  | { readonly type: "left"; readonly listing: Listing; readonly moment: Moment | null }
  /** The watch has ended and may have missed changes: list the queue and watch again. */
  | { readonly type: "broken" };

/** An event of a watch on an entry of this process. */
export type OwnChange =
  /** The entry left or is about to. `revoked` is the reason given to `revoke`; null otherwise. */
  | { readonly type: "gone"; readonly revoked: string | null }
  /** The watch has ended and may have missed the end of the entry: list and watch again. */
  | { readonly type: "broken" };

/** A watch that has been started. */
export interface Watch {
  /** Ends the watch. Its listener is not called again. */
  close(): void;
}

/** A watch on a queue. */
export interface QueueWatch extends Watch {
  /**
   * Lists the queue, without texts, as of the last change that this watch reported or any later
   * moment. May be cheaper than `Sequencer.list`. Also works after `close`.
   */
  list(limitMs: number): Promise<Listing>;
}

/** A store that orders session-bound entries and lets clients watch them. */
export interface Sequencer {
  /** Shown in errors and events. */
  readonly name: string;
  /** Shown in events. Locks in different namespaces are independent. Default: `""`. */
  readonly namespace?: string;
  /** What the store can do. */
  readonly traits: Traits;
  /** The clock, timers and random numbers that the family and the store use. */
  readonly runtime: Runtime;
  /** Returns why no server can be reached; null if one can, or if the reason is unknown. */
  whyUnreachable?(): Promise<Error | null>;
  /** Opens a session that the store keeps for at least `ttlMs` after each proof. */
  openSession(ttlMs: number, limitMs: number): Promise<StoreSession>;
  /**
   * Finds the session and the entry that a locator names. Returns null if either is gone or the
   * text is not a locator.
   */
  resumeSession(locator: string, claim: Claim, limitMs: number): Promise<Resumed | null>;
  /** Lists the queue as of some moment between the call and its answer. */
  list(lock: LockId, look: "plain" | "texts", limitMs: number): Promise<Listing>;
  /** Lists every queue in use whose name begins with `prefix`, with texts. */
  queues(space: Space, prefix: string, limitMs: number): Promise<ReadonlyMap<string, Listing>>;
  /** How long the store keeps each of these if its session is not renewed. For views only. */
  remainingMs(kept: readonly (Entry | ListedMark)[], limitMs: number): Promise<readonly number[]>;
  /** Removes the entry or mark with this token. The owner of an entry gets the reason. */
  revoke(lock: LockId, token: bigint, reason: string, limitMs: number): Promise<boolean>;
  /**
   * Reports every change of the obstacle since the listing, however old the listing is. A change
   * between the listing and the start of the watch is reported once the watch has started; a store
   * whose watches cannot start in the past compares the queue with the listing at that point. The
   * listener is never called before this returns or after `close`.
   */
  watchQueue(
    lock: LockId,
    obstacle: Obstacle,
    listing: Listing,
    listener: (change: QueueChange) => void,
  ): QueueWatch;
  /**
   * Reports the end of an entry of this process that was there at `since`. The watch does not keep
   * the process alive. The listener is never called before this returns or after `close`.
   */
  watchOwn(entry: OwnEntry, since: Moment, listener: (change: OwnChange) => void): Watch;
  /** See `Store.examine`. */
  examine?(request: ExamineRequest): Promise<Examination>;
  /** Ends all pending calls and watches, and closes what the store opened itself. */
  close(): Promise<void>;
}
