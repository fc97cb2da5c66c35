import type { Tombstone } from "../../rules/ledger-state.js";
import type { Here, NameRecord } from "./name-record.js";
import { reading, readTombstones, tombstoneOf } from "./read-rows.js";
import type { Sqlite } from "./sqlite.js";

const HERE = "space = ? AND key = ?";
const BY_OWNER = `SELECT until, reason FROM tombstone WHERE ${HERE} AND owner = ?`;
const WRITE = "INSERT OR REPLACE INTO tombstone VALUES (?, ?, ?, ?, ?)";
/** So many are dropped at once. */
const MOST_DROPPED = 64;
const DELETE = `DELETE FROM tombstone WHERE ${HERE} AND owner IN (SELECT owner FROM tombstone
  WHERE ${HERE} AND until <= ? ORDER BY until LIMIT ${MOST_DROPPED})`;
const NEXT_END = `SELECT min(until) FROM tombstone WHERE ${HERE}`;

/** The tombstones of one name; how many there are stands in the record of the name. */
export class TombstoneRows {
  readonly #database: Sqlite;
  readonly #here: Here;
  readonly #record: NameRecord;

  constructor(database: Sqlite, here: Here, record: NameRecord) {
    this.#database = database;
    this.#here = here;
    this.#record = record;
  }

  get(owner: string, nowUs: number): Tombstone | undefined {
    if (!this.#record.tombstones) return undefined;
    const tombstone = reading("tombstone", this.#here, () => {
      const row = this.#database.get(BY_OWNER, [...this.#here, owner]);
      return row && tombstoneOf(owner, row);
    });
    return tombstone && tombstone.untilUs > nowUs ? tombstone : undefined;
  }

  put({ owner, untilUs, reason }: Tombstone): void {
    const before = this.#record.tombstones;
    const count = (before?.count ?? 0) + (this.get(owner, 0) ? 0 : 1);
    this.#record.tombstones = { count, untilUs: Math.min(before?.untilUs ?? untilUs, untilUs) };
    this.#database.run(WRITE, [...this.#here, owner, untilUs, reason]);
  }

  drop(nowUs: number): void {
    const before = this.#record.tombstones;
    if (!before || nowUs < before.untilUs) return;
    const dropped = this.#database.change(DELETE, [...this.#here, ...this.#here, nowUs]);
    this.#record.tombstones = reading("tombstone", this.#here, () => {
      const count = Math.max(1, before.count - dropped);
      const [untilUs] = this.#database.get(NEXT_END, [...this.#here]) ?? [];
      return untilUs === null ? undefined : readTombstones({ count, untilUs });
    });
  }
}
