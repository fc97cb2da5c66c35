import { whole } from "../../foreign-data.js";
import { joined, NO_LIMIT, type Occupancy, VACANT } from "../../rules/fits.js";
import type { Holder } from "../../rules/ledger-state.js";
import type { Holders } from "./holder-list.js";
import type { Here, NameRecord } from "./name-record.js";
import { holderOf, reading } from "./read-rows.js";
import type { Sqlite, Value } from "./sqlite.js";

const HERE = "space = ? AND key = ?";
const COLUMNS = "token, owner, client, expiry, confirmed, body";
const BY_OWNER = `SELECT ${COLUMNS} FROM holder WHERE ${HERE} AND owner = ?`;
const ALL = `SELECT ${COLUMNS} FROM holder WHERE ${HERE} ORDER BY token`;
const OFFERS = `SELECT ${COLUMNS} FROM holder
  WHERE ${HERE} AND client = ? AND confirmed = 0 ORDER BY token LIMIT ?`;
const LAST_BEFORE = `SELECT ${COLUMNS} FROM holder
  WHERE ${HERE} AND token <= ? ORDER BY token DESC LIMIT 1`;
const NEXT = `SELECT ${COLUMNS} FROM holder WHERE ${HERE} ORDER BY expiry, token LIMIT 1`;
const INSERT = "INSERT INTO holder VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
const UPDATE = `UPDATE holder SET client = ?, expiry = ?, confirmed = ?, body = ?
  WHERE ${HERE} AND token = ?`;
const DELETE = `DELETE FROM holder WHERE ${HERE} AND token = ?`;
const SAME_LIMIT = `SELECT 1 FROM holder
  WHERE ${HERE} AND json_extract(body, '$.limit') = ? LIMIT 1`;
const LEAST_LIMIT = `SELECT min(json_extract(body, '$.limit')) FROM holder WHERE ${HERE}`;

/** Many shared holders, a row for each; what they are in sum stands in the record of their name. */
export class HolderRows implements Holders {
  readonly isFull = false;
  readonly #database: Sqlite;
  readonly #here: Here;
  readonly #record: NameRecord;

  constructor(database: Sqlite, here: Here, record: NameRecord) {
    this.#database = database;
    this.#here = here;
    this.#record = record;
  }

  occupancy(): Occupancy {
    return this.#record.holderRows ?? VACANT;
  }

  get(owner: string): Holder | undefined {
    return this.#one(BY_OWNER, [owner]);
  }

  all(): Holder[] {
    return this.#several(ALL, []);
  }

  /** Spans do not overlap: only the last that begins before the token can have it. */
  with(token: number): Holder | undefined {
    const holder = this.#one(LAST_BEFORE, [token]);
    return holder && token < holder.token + holder.span ? holder : undefined;
  }

  offers(client: string, most: number): Holder[] {
    return this.#several(OFFERS, [client, most]);
  }

  nextToExpire(): Holder | undefined {
    return this.#one(NEXT, []);
  }

  add(holder: Holder): void {
    const { token, owner, client, expiryUs, confirmed } = holder;
    const values = [token, owner, client, expiryUs, Number(confirmed), bodyOf(holder)];
    this.#database.run(INSERT, [...this.#here, ...values]);
    this.#record.holderRows = joined(this.occupancy(), holder);
  }

  update(holder: Holder): void {
    const { token, client, expiryUs, confirmed } = holder;
    const values = [client, expiryUs, Number(confirmed), bodyOf(holder), ...this.#here, token];
    this.#database.run(UPDATE, values);
  }

  remove(holder: Holder): void {
    this.#database.run(DELETE, [...this.#here, holder.token]);
    const held = this.occupancy();
    const count = held.count - 1;
    const weight = held.weight - holder.weight;
    this.#record.holderRows =
      count === 0 ? undefined : { ...held, count, weight, limit: this.#limitWithout(holder) };
  }

  /** The same as before, but for a deploy that changes it. */
  #limitWithout({ limit }: Holder): number {
    const before = this.occupancy().limit;
    if (limit > before || limit === NO_LIMIT) return before;
    return reading("holder", this.#here, () => {
      if (this.#database.get(SAME_LIMIT, [...this.#here, limit])) return limit;
      return whole(this.#database.get(LEAST_LIMIT, [...this.#here])?.[0]);
    });
  }

  #one(sql: string, values: Value[]): Holder | undefined {
    return reading("holder", this.#here, () => {
      const row = this.#database.get(sql, [...this.#here, ...values]);
      return row && holderOf(row);
    });
  }

  #several(sql: string, values: Value[]): Holder[] {
    return reading("holder", this.#here, () =>
      this.#database.all(sql, [...this.#here, ...values]).map(holderOf),
    );
  }
}

function bodyOf({ weight, limit, ttlUs, span, meta, grantedUs }: Holder): string {
  return JSON.stringify({ weight, limit, ttlUs, span, meta, grantedUs });
}
