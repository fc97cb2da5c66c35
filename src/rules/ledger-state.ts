import type { Occupancy, Request } from "./fits.js";

/** One grant. Mutable fields are written back with `updateHolder`. */
export interface Holder extends Request {
  readonly owner: string;
  /** Is told what becomes of it. */
  client: string;
  readonly token: number;
  readonly span: number;
  readonly meta: string;
  readonly grantedUs: number;
  ttlUs: number;
  expiryUs: number;
  /** False while a handed-off grant waits for the first word of its owner. */
  confirmed: boolean;
}

export interface Waiter extends Request {
  readonly owner: string;
  readonly client: string;
  readonly ttlUs: number;
  readonly offerUs: number;
  readonly span: number;
  readonly meta: string;
  readonly sinceUs: number;
}

/** What the ledger knows of a client at one name: there only while it has waiters. */
export interface WaitingClient {
  readonly id: string;
  readonly touchUs: number;
  readonly waiting: number;
  /** When its silence has lasted too long. */
  goneUs: number;
  /** Its waiters keep their places, but are passed over. */
  suspect: boolean;
}

export interface Mark {
  readonly token: number;
  readonly untilUs: number;
  readonly meta: string;
}

/** Refuses an owner that has ended; the reason is that of a revocation. */
export interface Tombstone {
  readonly owner: string;
  readonly untilUs: number;
  readonly reason: string | null;
}

/**
 * The state of one name, as narrow as the ledger needs it. Every call costs at most O(log n) in the
 * number of holders and waiters, but for `holders` and `waiters`, which list them, and
 * `dropClient`.
 */
export interface LedgerState {
  readonly key: string;

  /** The last token given out in this namespace. */
  lastToken(): number;
  setLastToken(token: number): void;

  occupancy(): Occupancy;
  holder(owner: string): Holder | undefined;
  /** In the order of their tokens. */
  holders(): Iterable<Holder>;
  /** The holder whose span has this token. */
  holderWith(token: number): Holder | undefined;
  /** The holders of a client that are not confirmed: the first so many, by their tokens. */
  offers(client: string, most: number): readonly Holder[];
  nextToExpire(): Holder | undefined;
  /** A holder whose expiry has come. */
  expired(nowUs: number): Holder | undefined;
  putHolder(holder: Holder): void;
  updateHolder(holder: Holder): void;
  dropHolder(holder: Holder): void;

  /** How many wait, reachable or not. */
  waiting(): number;
  waiter(owner: string): Waiter | undefined;
  /** In the order of the queue. */
  waiters(): Iterable<Waiter>;
  /** The first waiter whose client is not suspect. */
  head(): Waiter | undefined;
  /** A client that waits already is given the patience of its most patient waiter. */
  enqueue(waiter: Waiter, liveness: { touchUs: number; goneUs: number }): void;
  dropWaiter(waiter: Waiter): void;

  client(id: string): WaitingClient | undefined;
  /** A client that was silent for too long. */
  silent(nowUs: number): WaitingClient | undefined;
  updateClient(client: WaitingClient): void;
  /** Drops the client and all its waiters. */
  dropClient(client: WaitingClient): void;

  mark(): Mark | undefined;
  putMark(mark: Mark): void;
  /** Drops the mark if its time has come. */
  dropMark(nowUs: number): void;

  /** The tombstone of an owner, unless its time has come. */
  tombstone(owner: string, nowUs: number): Tombstone | undefined;
  putTombstone(tombstone: Tombstone): void;
  /** Drops some of those whose time has come. */
  dropTombstones(nowUs: number): void;
}
