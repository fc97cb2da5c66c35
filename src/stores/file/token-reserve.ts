import type { Sqlite } from "./sqlite.js";

/** The wall clock of the machine ticks once a millisecond. */
const TICK_US = 1_000;

/**
 * The last token of a namespace, as the file keeps it and as this client knows it.
 *
 * The file keeps a token that is not below any token given out. A write keeps the last token of the
 * present tick of the wall clock, so the next grants of this client in that tick write no token.
 * While the file keeps what this client wrote, this client gave out the last token: a grant of
 * another client keeps a higher one. Otherwise the kept token counts as the last one.
 *
 * A transaction that fails after `advance` ends its connection (LockFile), and what is known of one
 * connection does not count for the next.
 */
export class TokenReserve {
  #database: Sqlite | undefined;
  /** The id of the namespace in that database. */
  spaceId = 0;
  /** The token that the file keeps. */
  kept: number = Number.NaN;
  /** The last token given out: a token that was not granted in the end may be skipped. */
  last = 0;

  /** Notes that the file keeps this token. */
  onRead(database: Sqlite, spaceId: number, kept: number): void {
    if (kept !== this.kept || !this.isKnownIn(database)) this.last = kept;
    this.#database = database;
    this.spaceId = spaceId;
    this.kept = kept;
  }

  isKnownIn(database: Sqlite): boolean {
    return this.#database === database;
  }

  /** Counts on to a last token; true where the file has to keep another one for that. */
  advance(last: number, wallUs: number): boolean {
    this.last = last;
    if (last <= this.kept) return false;
    const tickEndUs = wallUs - (wallUs % TICK_US) + TICK_US - 1;
    this.kept = Math.max(last, tickEndUs);
    return true;
  }
}
