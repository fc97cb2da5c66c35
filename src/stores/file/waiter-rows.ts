import { whole } from "../../foreign-data.js";
import type { Waiter, WaitingClient } from "../../rules/ledger-state.js";
import type { Here, NameRecord, WaiterSum } from "./name-record.js";
import { clientOf, reading, waiterOf } from "./read-rows.js";
import type { Sqlite, Value } from "./sqlite.js";
import type { Waiters } from "./waiter-list.js";

/** A waiter with its place in the queue, by which its row is found again. */
interface Placed extends Waiter {
  readonly place: number;
}

const HERE = "space = ? AND key = ?";
const HEAD = `SELECT w.owner, w.client, w.place, w.body FROM client c
  JOIN waiter w ON w.space = c.space AND w.key = c.key AND w.client = c.id AND w.place = c.place
  WHERE c.space = ? AND c.key = ? AND c.suspect = 0 ORDER BY c.place LIMIT 1`;
const BY_OWNER = `SELECT owner, client, place, body FROM waiter WHERE ${HERE} AND owner = ?`;
const ALL = `SELECT owner, client, place, body FROM waiter WHERE ${HERE} ORDER BY place`;
const INSERT = "INSERT INTO waiter VALUES (?, ?, ?, ?, ?, ?)";
const DELETE = `DELETE FROM waiter WHERE ${HERE} AND client = ? AND place = ?`;
const DELETE_LINE = `DELETE FROM waiter WHERE ${HERE} AND client = ?`;
const FIRST_PLACE = `SELECT min(place) FROM waiter WHERE ${HERE} AND client = ?`;
const CLIENT = `SELECT id, touch, gone, waiting, suspect FROM client WHERE ${HERE} AND id = ?`;
const SILENT = `SELECT id, touch, gone, waiting, suspect FROM client
  WHERE ${HERE} AND gone <= ? ORDER BY gone LIMIT 1`;
const NEXT_SILENT = `SELECT min(gone) FROM client WHERE ${HERE}`;
const JOIN_LINE = `INSERT INTO client VALUES (?, ?, ?, ?, ?, 1, 0, ?)
  ON CONFLICT DO UPDATE SET waiting = waiting + 1,
    touch = max(touch, excluded.touch), gone = max(gone, excluded.gone)`;
const LEAVE_LINE = `UPDATE client SET waiting = waiting - 1, place = ? WHERE ${HERE} AND id = ?`;
const UPDATE_CLIENT = `UPDATE client SET gone = ?, suspect = ? WHERE ${HERE} AND id = ?`;
const DELETE_CLIENT = `DELETE FROM client WHERE ${HERE} AND id = ?`;

/**
 * Many waiters: a row for each, and a row per client that knows the place of its first one. The
 * head is found among the clients, so a suspect client is passed over in one step, however many of
 * its waiters stand in front.
 */
export class WaiterRows implements Waiters {
  readonly isFull = false;
  readonly #database: Sqlite;
  readonly #here: Here;
  readonly #record: NameRecord;

  constructor(database: Sqlite, here: Here, record: NameRecord) {
    this.#database = database;
    this.#here = here;
    this.#record = record;
  }

  get size(): number {
    return this.#record.waiterRows?.count ?? 0;
  }

  head(): Waiter | undefined {
    return this.#one(HEAD, []);
  }

  get(owner: string): Waiter | undefined {
    return this.#one(BY_OWNER, [owner]);
  }

  all(): Waiter[] {
    return reading("waiter", this.#here, () =>
      this.#database.all(ALL, [...this.#here]).map(waiterOf),
    );
  }

  add(waiter: Waiter, { touchUs, goneUs }: { touchUs: number; goneUs: number }): void {
    const { client, owner } = waiter;
    const sum = this.#sum(goneUs);
    const place = sum.nextPlace++;
    sum.count += 1;
    sum.silentUs = Math.min(sum.silentUs, goneUs);
    this.#database.run(INSERT, [...this.#here, client, place, owner, bodyOf(waiter)]);
    this.#database.run(JOIN_LINE, [...this.#here, client, touchUs, goneUs, place]);
  }

  remove(waiter: Waiter): void {
    const { client, place } = waiter as Placed;
    this.#database.run(DELETE, [...this.#here, client, place]);
    const first = reading("waiter", this.#here, () => {
      const place = this.#database.get(FIRST_PLACE, [...this.#here, client])?.[0] ?? null;
      return place === null ? null : whole(place);
    });
    if (first === null) this.#database.run(DELETE_CLIENT, [...this.#here, client]);
    else this.#database.run(LEAVE_LINE, [first, ...this.#here, client]);
    this.#left(1);
  }

  client(id: string): WaitingClient | undefined {
    return this.#client(CLIENT, id);
  }

  silent(nowUs: number): WaitingClient | undefined {
    const sum = this.#sum(0);
    if (nowUs < sum.silentUs) return undefined;
    const silent = this.#client(SILENT, nowUs);
    if (!silent) {
      sum.silentUs = reading("client", this.#here, () =>
        whole(this.#database.get(NEXT_SILENT, [...this.#here])?.[0] ?? 0),
      );
    }
    return silent;
  }

  update({ id, goneUs, suspect }: WaitingClient): void {
    const sum = this.#sum(goneUs);
    sum.silentUs = Math.min(sum.silentUs, goneUs);
    this.#database.run(UPDATE_CLIENT, [goneUs, Number(suspect), ...this.#here, id]);
  }

  drop({ id, waiting }: WaitingClient): void {
    this.#database.run(DELETE_LINE, [...this.#here, id]);
    this.#database.run(DELETE_CLIENT, [...this.#here, id]);
    this.#left(waiting);
  }

  #one(sql: string, values: Value[]): Waiter | undefined {
    return reading("waiter", this.#here, () => {
      const row = this.#database.get(sql, [...this.#here, ...values]);
      return row && waiterOf(row);
    });
  }

  #client(sql: string, value: Value): WaitingClient | undefined {
    return reading("client", this.#here, () => {
      const row = this.#database.get(sql, [...this.#here, value]);
      return row && clientOf(row);
    });
  }

  #sum(silentUs: number): WaiterSum {
    this.#record.waiterRows ??= { count: 0, nextPlace: 0, silentUs };
    return this.#record.waiterRows;
  }

  #left(count: number): void {
    const sum = this.#sum(0);
    sum.count -= count;
    if (sum.count <= 0) this.#record.waiterRows = undefined;
  }
}

function bodyOf(waiter: Waiter): string {
  const { mode, weight, limit, ttlUs, offerUs, span, meta, sinceUs } = waiter;
  return JSON.stringify({ mode, weight, limit, ttlUs, offerUs, span, meta, sinceUs });
}
