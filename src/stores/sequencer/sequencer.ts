import type { Request } from "../../rules/fits.js";
import type { Space } from "../../rules/name.js";
import type { Claim, Meta, Traits } from "../../store.js";
import type { Port } from "../../time/port.js";

/** Which line: the entries of one name stand in it. */
export interface Place {
  readonly space: Space;
  readonly name: string;
}

/** One entry in a line, as the store orders it. */
export interface Entry extends Request {
  /** Names it within its line; when it is gone, another may be called the same. */
  readonly id: string;
  /** Rises with every entry that the store ever takes: the order of the line, and the token. */
  readonly order: bigint;
  /** The session that it ends with. */
  readonly session: string;
  /** What its owner wrote into it; null where nobody asked for it. */
  readonly text: string | null;
}

/** What a finished `once` left in its line. */
export interface Mark {
  readonly token: bigint;
  readonly session: string;
  readonly text: string;
}

/** A line at one moment of the store. */
export interface Listing {
  /** That moment: later ones are greater. */
  readonly at: bigint;
  /** In their order. */
  readonly entries: readonly Entry[];
  readonly mark: Mark | null;
}

/** An entry of this process, from before it is sent until it is known to be gone. */
export interface OwnEntry {
  readonly place: Place;
  readonly claim: Claim;
  readonly id: string;
  readonly text: string;
  /** 0 until the store told. */
  order: bigint;
  /** A copy of the request that makes it may still be under way: see `SessionLink.leave`. */
  isDoubtful: boolean;
  /** Nobody wants it any more: it must not be asked for again. */
  isWithdrawn: boolean;
}

export type Entering =
  | { readonly type: "entered"; readonly listing: Listing }
  /** It was not made: it would not have been alone, or there is a mark. */
  | { readonly type: "refused"; readonly listing: Listing }
  /** The session is over. */
  | { readonly type: "gone" };

export type Proof =
  /** The session lives for `ttlMs` from the moment this was asked; these entries are not there. */
  | {
      readonly type: "proven";
      readonly ttlMs: number;
      readonly missing: ReadonlySet<OwnEntry>;
      readonly at: bigint;
    }
  | { readonly type: "gone" };

export interface Leaving {
  readonly wasThere: boolean;
  /** The line after it left, where asked for. */
  readonly listing: Listing | null;
}

/** A session with the store. Every call settles within its limit; a throw means "unknown". */
export interface SessionLink {
  readonly id: string;
  /** Not sent yet. */
  makeEntry(claim: Claim, text: string): OwnEntry;
  /** The entry is gone, was never made, or is in another session now. */
  forget(entry: OwnEntry): void;
  /** Makes the entry, unless it is there. With `ifAlone`, only where the line is empty. */
  enter(entry: OwnEntry, ifAlone: boolean, limitMs: number): Promise<Entering>;
  /**
   * Removes the entry; a doubtful one so that no late copy of its request can make it again. `look`
   * asks for the line after it, with texts or without; `mark` leaves a mark in its place, if it is
   * there.
   */
  leave(
    entry: OwnEntry,
    options: {
      readonly look?: "plain" | "texts" | undefined;
      readonly mark?: { readonly ttlMs: number; readonly meta: Meta } | undefined;
    },
    limitMs: number,
  ): Promise<Leaving>;
  /** Keeps the session alive and proves that it is. */
  prove(entries: readonly OwnEntry[], limitMs: number): Promise<Proof>;
  /** Writes into the entry that it holds now, for whoever waits behind it. */
  markHeld(entry: OwnEntry, limitMs: number): Promise<void>;
  /** Binds an entry of another session to this one; false when it is gone. */
  adopt(entry: OwnEntry, limitMs: number): Promise<boolean>;
  /** Ends the session with all its entries. */
  end(limitMs: number): Promise<void>;
  /** Calls back when it can no longer keep ghosts away: no new entries, and an early end. */
  onSpoiled(listener: () => void): void;
}

/**
 * What to be told about: one entry (gone, or also written to), the entry of a holder of this
 * process (either, and it does not keep the process alive), or whatever leaves the line.
 */
export type Watched =
  | { readonly type: "own"; readonly id: string }
  | { readonly type: "entry"; readonly id: string; readonly orWritten: boolean }
  | { readonly type: "leaving" };

export type Change =
  /** All that left up to this moment and was not told before, and when each did. */
  | {
      readonly type: "gone";
      readonly at: bigint;
      readonly ids: ReadonlyMap<string, bigint>;
      readonly revoked: string | null;
    }
  | { readonly type: "written"; readonly at: bigint; readonly revoked: string | null }
  /** Something may have happened up to this moment, and would be told late: look. */
  | { readonly type: "behind"; readonly at: bigint }
  /** Changes may have been missed: look, and watch again. */
  | { readonly type: "broken" };

export interface Watch {
  close(): void;
}

/** A store that orders session-bound entries and lets clients watch them. */
export interface Sequencer {
  readonly name: string;
  readonly namespace?: string;
  readonly traits: Traits;
  readonly port: Port;
  openSession(ttlMs: number, limitMs: number): Promise<SessionLink>;
  /**
   * A session that another process opened, and its entry for this claim; null when either is gone.
   */
  resumeSession(
    session: string,
    claim: Claim,
    limitMs: number,
  ): Promise<{ readonly link: SessionLink; readonly entry: OwnEntry } | null>;
  /** The line as it is now; with `since`, as it was then or at any time after. */
  list(place: Place, look: "plain" | "texts", limitMs: number, since?: bigint): Promise<Listing>;
  /** Every line in use whose name begins with `prefix`, with texts. */
  lines(space: Space, prefix: string, limitMs: number): Promise<ReadonlyMap<string, Listing>>;
  /** How long the store will keep each of these sessions without hearing from them. */
  remainingMs(sessions: readonly string[], limitMs: number): Promise<readonly number[]>;
  /** Ends the entry or mark with this token, and tells its owner why. */
  revoke(place: Place, token: bigint, reason: string, limitMs: number): Promise<boolean>;
  /** Tells of everything that happens after `from`. */
  watch(place: Place, what: Watched, from: bigint, listener: (change: Change) => void): Watch;
  close(): Promise<void>;
}
