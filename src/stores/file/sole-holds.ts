import type { Command, Instant, Reply } from "../../rules/ledger-command.js";
import type { Here } from "./name-record.js";
import type { Sqlite } from "./sqlite.js";

/** The row of a name that has one holder and nothing else. */
export interface SoleHold {
  readonly here: Here;
  readonly body: string;
  readonly owner: string;
  readonly expiryUs: number;
}

const DELETE_SAME = "DELETE FROM name WHERE space = ? AND key = ? AND body = ?";
/** A program that holds more names releases the rest in the usual way. */
const MOST = 64;

/**
 * The names that this process was granted while no other process used them. Most are released
 * before another process comes, and then there is nothing to read: one statement removes the row if
 * it is still as this process wrote it. A command of another process would have changed the row,
 * which names the owner.
 */
export class SoleHolds {
  readonly #holds = new Map<string, SoleHold>();

  add(key: string, hold: SoleHold): void {
    this.#holds.set(key, hold);
    if (this.#holds.size <= MOST) return;
    for (const oldest of this.#holds.keys()) {
      this.#holds.delete(oldest);
      return;
    }
  }

  /**
   * Within a transaction: what the ledger would do and answer; null when it has to be asked, and
   * nothing was done.
   */
  release(commands: readonly Command[], at: Instant, database: Sqlite): readonly Reply[] | null {
    const [only] = commands;
    if (only?.type !== "release" || commands.length > 1) return null;
    const { key, owner, tombstoneUs, keep } = only;
    const hold = this.#holds.get(key);
    if (hold?.owner !== owner) return null;
    this.#holds.delete(key);
    if (keep || tombstoneUs > at.us || hold.expiryUs <= at.us) return null;
    if (database.change(DELETE_SAME, [...hold.here, hold.body]) === 0) return null;
    return [{ type: "released", held: true, offerUs: 0, more: false }];
  }
}
