import type { Occupancy, Request } from "./fits.js";

/** One grant. Mutable fields are written back with `updateHolder`. */
export interface Holder extends Request {
  /** The owner of the acquisition that was granted. */
  readonly owner: string;
  /** The client that is told about a revocation; a resumed lease changes it. */
  client: string;
  /** The first token of the grant. */
  readonly token: number;
  /** How many tokens the grant has, from `token` on. */
  readonly span: number;
  /** The JSON text of its meta. */
  readonly meta: string;
  /** The store's time of the grant. */
  readonly grantedUs: number;
  /**
   * The ttl of the grant or renewal that set `expiryUs`. The holder never believes in its lease for
   * longer than this from any moment on.
   */
  ttlUs: number;
  /** The store's time from which the grant no longer counts. */
  expiryUs: number;
  /** False while the grant is an offer: its owner has not confirmed the handoff. */
  confirmed: boolean;
}

/** One acquisition in the queue. */
export interface Waiter extends Request {
  /** The owner of the acquisition. */
  readonly owner: string;
  /** The client that is told about its grant. */
  readonly client: string;
  /** The length of the lease that it asks for. */
  readonly ttlUs: number;
  /** How long a grant waits for its confirm when it is handed off to this waiter. */
  readonly offerUs: number;
  /** How many tokens it asks for. */
  readonly span: number;
  /** The JSON text of its meta. */
  readonly meta: string;
  /** The store's time at which it joined the queue. */
  readonly sinceUs: number;
}

/** A client at one name, as the ledger knows it: only while the client has waiters there. */
export interface WaitingClient {
  /** The random id of the client. */
  readonly id: string;
  /** How often it promised to send a heartbeat. */
  readonly heartbeatUs: number;
  /** How many waiters it has in the queue of this name. */
  readonly waiting: number;
  /** The store's time at which its silence has lasted too long. */
  goneUs: number;
  /** Its waiters keep their places, but are passed over. */
  unresponsive: boolean;
}

/** The work of a `once` is done: no acquire is granted before the mark ends. */
export interface Mark {
  /** The token of the run that finished. */
  readonly token: number;
  /** The store's time from which the mark no longer counts. */
  readonly untilUs: number;
  /** The JSON text of the meta of that run. */
  readonly meta: string;
}

/** Refuses late requests of an owner that has ended. */
export interface Tombstone {
  /** The owner that has ended. */
  readonly owner: string;
  /** The store's time from which no request of this owner can be under way. */
  readonly untilUs: number;
  /** The reason of the revocation that ended the owner; null where it was released. */
  readonly reason: string | null;
}

/**
 * The state of one name, as narrow as the ledger needs it. Every call costs at most O(log n) in the
 * number of holders and waiters, but for `holders` and `waiters`, which list them, and
 * `dropClient`.
 */
export interface LedgerState {
  /** The name, as `keyOf` writes it. */
  readonly key: string;

  /** The last token given out in this namespace. */
  lastToken(): number;
  /** Keeps the last token, even when all names of the namespace are free. */
  setLastToken(token: number): void;

  /** The holders in sum. */
  occupancy(): Occupancy;
  /** The holder with this owner. */
  holder(owner: string): Holder | undefined;
  /** In the order of their tokens. */
  holders(): Iterable<Holder>;
  /** The holder whose span has this token. */
  holderWith(token: number): Holder | undefined;
  /** The holders of a client that are not confirmed: the first so many, by their tokens. */
  offers(client: string, most: number): readonly Holder[];
  /** The holder with the earliest expiry. */
  nextToExpire(): Holder | undefined;
  /** A holder whose expiry has come. */
  expired(nowUs: number): Holder | undefined;
  /** Adds a holder. */
  putHolder(holder: Holder): void;
  /** Keeps the changed fields of a holder. */
  updateHolder(holder: Holder): void;
  /** Removes a holder. */
  dropHolder(holder: Holder): void;

  /** How many wait, reachable or not. */
  waiting(): number;
  /** The waiter with this owner. */
  waiter(owner: string): Waiter | undefined;
  /** In the order of the queue. */
  waiters(): Iterable<Waiter>;
  /** The first waiter whose client is responsive. */
  head(): Waiter | undefined;
  /** A client that waits already is given the patience of its most patient waiter. */
  enqueue(waiter: Waiter, liveness: { heartbeatUs: number; goneUs: number }): void;
  /** Removes a waiter, and its client with the last waiter of that client. */
  dropWaiter(waiter: Waiter): void;

  /** The client with this id, if it has waiters here. */
  client(id: string): WaitingClient | undefined;
  /** A client that was silent for too long. */
  silent(nowUs: number): WaitingClient | undefined;
  /** Keeps the changed fields of a client. */
  updateClient(client: WaitingClient): void;
  /** Drops the client and all its waiters. */
  dropClient(client: WaitingClient): void;

  /** The mark of a finished `once`. */
  mark(): Mark | undefined;
  /** Adds the mark of a finished `once`. */
  putMark(mark: Mark): void;
  /** Drops the mark if its time has come. */
  dropMark(nowUs: number): void;

  /** The tombstone of an owner, unless its time has come. */
  tombstone(owner: string, nowUs: number): Tombstone | undefined;
  /** Adds a tombstone, or replaces the tombstone of the same owner. */
  putTombstone(tombstone: Tombstone): void;
  /** Drops some of those whose time has come. */
  dropTombstones(nowUs: number): void;
}
