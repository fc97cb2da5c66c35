import { apply } from "../../rules/ledger.js";
import type { Acquire, Command, Instant, Release, Reply } from "../../rules/ledger-command.js";
import { Upkeep } from "../../rules/upkeep.js";
import { FileState } from "./file-state.js";
import { machineIdentity } from "./machine-identity.js";
import { type Here, toText } from "./name-record.js";
import type { Sqlite } from "./sqlite.js";
import type { TokenReserve } from "./token-reserve.js";

/** The row of a name that has one holder and nothing else. */
export interface SoleHold {
  readonly here: Here;
  readonly body: string;
  readonly owner: string;
  readonly expiryUs: number;
}

const INSERT_ABSENT = `INSERT INTO name SELECT s.id, ?, ? FROM space s JOIN machine m
  WHERE s.id = ? AND s.token = ? AND m.identity = ? ON CONFLICT DO NOTHING`;
const DELETE_SAME = "DELETE FROM name WHERE space = ? AND key = ? AND body = ?";
/** A program that holds more names releases the rest in the usual way. */
const MOST = 64;

const noPush = (): boolean => false;

/**
 * Acquires and releases names that no other client uses, each with the one statement that the
 * ledger would come to: there is nothing to read first.
 *
 * A name without a row has no holder, waiter, mark or tombstone. So an acquire runs the ledger on
 * the empty state, and the statement inserts the row if there is still none, the file is of this
 * boot, and no other client was granted a token. A release removes the row if it is as this client
 * wrote it: a command of another client would have changed the row, which names the owner.
 *
 * The clock is read before the statement, so this process may be stopped between the two. Then the
 * row of an acquire ends early, as the deadline of its client does; and a release after the expiry
 * removes a row that no other client has touched.
 */
export class LonePath {
  readonly #tokens: TokenReserve;
  readonly #upkeep = new Upkeep();
  readonly #holds = new Map<string, SoleHold>();

  constructor(tokens: TokenReserve) {
    this.#tokens = tokens;
  }

  /** Remembers a hold that the ledger made in a transaction. */
  add(key: string, hold: SoleHold): void {
    this.#holds.set(key, hold);
    if (this.#holds.size <= MOST) return;
    for (const oldest of this.#holds.keys()) {
      this.#holds.delete(oldest);
      return;
    }
  }

  /** The reply of the ledger; null when the ledger has to be asked, and nothing was done. */
  execute(command: Command, at: Instant, database: Sqlite): Reply | null {
    if (command.type === "acquire") return this.#acquire(command, at, database);
    return command.type === "release" ? this.#release(command, at, database) : null;
  }

  #acquire(command: Acquire, at: Instant, database: Sqlite): Reply | null {
    const { spaceId, kept, last } = this.#tokens;
    // Beyond the kept token, the file has to keep another one.
    if (!this.#tokens.isKnownIn(database) || at.wallUs > kept) return null;
    const here: Here = [spaceId, toText(command.key)];
    const space = { lastToken: last, wallOffsetUs: 0 };
    const state = new FileState(database, command.key, here, null, space);
    const reply = apply(state, command, at, noPush, this.#upkeep);
    const hold = state.soleHold();
    if (!hold || space.lastToken > kept) return null;
    const values = [here[1], hold.body, spaceId, kept, machineIdentity()];
    if (!database.changeAlone(INSERT_ABSENT, values)) return null;
    this.#tokens.advance(space.lastToken, at.wallUs);
    this.add(command.key, hold);
    return reply;
  }

  #release(command: Release, at: Instant, database: Sqlite): Reply | null {
    const { key, owner, tombstoneUs, keep } = command;
    const hold = this.#holds.get(key);
    if (hold?.owner !== owner) return null;
    this.#holds.delete(key);
    if (keep || tombstoneUs > at.us || hold.expiryUs <= at.us) return null;
    if (!database.changeAlone(DELETE_SAME, [...hold.here, hold.body])) return null;
    return { type: "released", held: true, offerUs: 0, more: false };
  }
}
