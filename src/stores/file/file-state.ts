import type { Occupancy } from "../../rules/fits.js";
import type {
  Holder,
  LedgerState,
  Mark,
  Tombstone,
  Waiter,
  WaitingClient,
} from "../../rules/ledger-state.js";
import { HolderList, type Holders } from "./holder-list.js";
import { HolderRows } from "./holder-rows.js";
import type { SoleHold } from "./lone-path.js";
import { type Here, isAtRest, type NameRecord, soleHolder } from "./name-record.js";
import { nameOf } from "./read-rows.js";
import type { Sqlite } from "./sqlite.js";
import { TombstoneRows } from "./tombstone-rows.js";
import { WaiterList, type Waiters } from "./waiter-list.js";
import { WaiterRows } from "./waiter-rows.js";

/**
 * The last token of a namespace during one transaction, and the wall clock its marks are kept by.
 */
export interface SpaceTime {
  lastToken: number;
  /** Wall clock minus the clock of the leases. */
  readonly wallOffsetUs: number;
}

const WRITE = "INSERT OR REPLACE INTO name VALUES (?, ?, ?)";
const DELETE = "DELETE FROM name WHERE space = ? AND key = ?";

/** The state of one name in the file, for the length of one transaction. `save` ends it. */
export class FileState implements LedgerState {
  readonly key: string;
  readonly #database: Sqlite;
  readonly #here: Here;
  readonly #space: SpaceTime;
  readonly #record: NameRecord;
  readonly #before: string | null;
  readonly #tombstones: TombstoneRows;
  #holders: Holders;
  #waiters: Waiters;

  /** `body` is the name's row; null where there is none. */
  constructor(database: Sqlite, key: string, here: Here, body: string | null, space: SpaceTime) {
    const record = nameOf(here, body);
    this.key = key;
    this.#database = database;
    this.#here = here;
    this.#space = space;
    this.#before = body;
    this.#record = record;
    this.#tombstones = new TombstoneRows(database, here, record);
    this.#holders = this.#heldHolders();
    this.#waiters = this.#heldWaiters();
  }

  save(): void {
    const body = isAtRest(this.#record) ? null : JSON.stringify(this.#record);
    if (body === this.#before) return;
    if (body === null) this.#database.run(DELETE, [...this.#here]);
    else this.#database.run(WRITE, [...this.#here, body]);
  }

  /** The one hold, with the row that `save` writes for it, where there is nothing else. */
  soleHold(): SoleHold | null {
    const holder = soleHolder(this.#record);
    if (!holder) return null;
    const { owner, expiryUs } = holder;
    return { here: this.#here, body: JSON.stringify(this.#record), owner, expiryUs };
  }

  lastToken(): number {
    return this.#space.lastToken;
  }

  setLastToken(token: number): void {
    this.#space.lastToken = token;
  }

  occupancy(): Occupancy {
    return this.#holders.occupancy();
  }

  holder(owner: string): Holder | undefined {
    return this.#holders.get(owner);
  }

  holders(): Iterable<Holder> {
    return this.#holders.all();
  }

  holderWith(token: number): Holder | undefined {
    return this.#holders.with(token);
  }

  offers(client: string, most: number): readonly Holder[] {
    return this.#holders.offers(client, most);
  }

  nextToExpire(): Holder | undefined {
    return this.#holders.nextToExpire();
  }

  expired(nowUs: number): Holder | undefined {
    const next = this.nextToExpire();
    return next && next.expiryUs <= nowUs ? next : undefined;
  }

  putHolder(holder: Holder): void {
    if (this.#holders.isFull) {
      const few = this.#holders.all();
      this.#record.holders = undefined;
      this.#holders = new HolderRows(this.#database, this.#here, this.#record);
      for (const each of few) this.#holders.add(each);
    }
    this.#holders.add(holder);
  }

  updateHolder(holder: Holder): void {
    this.#holders.update(holder);
  }

  dropHolder(holder: Holder): void {
    this.#holders.remove(holder);
    this.#holders = this.#heldHolders();
  }

  waiting(): number {
    return this.#waiters.size;
  }

  waiter(owner: string): Waiter | undefined {
    return this.#waiters.get(owner);
  }

  waiters(): Iterable<Waiter> {
    return this.#waiters.all();
  }

  head(): Waiter | undefined {
    return this.#waiters.size > 0 ? this.#waiters.head() : undefined;
  }

  enqueue(waiter: Waiter, liveness: { touchUs: number; goneUs: number }): void {
    if (this.#waiters.isFull) this.#spillWaiters();
    this.#waiters.add(waiter, liveness);
  }

  dropWaiter(waiter: Waiter): void {
    this.#waiters.remove(waiter);
    this.#waiters = this.#heldWaiters();
  }

  client(id: string): WaitingClient | undefined {
    return this.#waiters.size > 0 ? this.#waiters.client(id) : undefined;
  }

  silent(nowUs: number): WaitingClient | undefined {
    return this.#waiters.size > 0 ? this.#waiters.silent(nowUs) : undefined;
  }

  updateClient(client: WaitingClient): void {
    this.#waiters.update(client);
  }

  dropClient(client: WaitingClient): void {
    this.#waiters.drop(client);
    this.#waiters = this.#heldWaiters();
  }

  mark(): Mark | undefined {
    return this.#record.mark;
  }

  putMark(mark: Mark): void {
    this.#record.mark = { ...mark, untilWallUs: mark.untilUs + this.#space.wallOffsetUs };
  }

  dropMark(nowUs: number): void {
    const { mark } = this.#record;
    if (mark && mark.untilUs <= nowUs) this.#record.mark = undefined;
  }

  tombstone(owner: string, nowUs: number): Tombstone | undefined {
    return this.#tombstones.get(owner, nowUs);
  }

  putTombstone(tombstone: Tombstone): void {
    this.#tombstones.put(tombstone);
  }

  dropTombstones(nowUs: number): void {
    this.#tombstones.drop(nowUs);
  }

  /** Where the holders are; when the last row is gone, the record has room again. */
  #heldHolders(): Holders {
    if (!this.#record.holderRows) return new HolderList(this.#record);
    return new HolderRows(this.#database, this.#here, this.#record);
  }

  #heldWaiters(): Waiters {
    if (!this.#record.waiterRows) return new WaiterList(this.#record);
    return new WaiterRows(this.#database, this.#here, this.#record);
  }

  #spillWaiters(): void {
    const few = this.#waiters.all();
    const clients = this.#record.clients ?? [];
    this.#record.waiters = undefined;
    this.#record.clients = undefined;
    const rows = new WaiterRows(this.#database, this.#here, this.#record);
    for (const waiter of few) {
      const client = clients.find(({ id }) => id === waiter.client);
      if (client) rows.add(waiter, client);
    }
    for (const client of clients) if (client.suspect) rows.update({ ...client, waiting: 0 });
    this.#waiters = rows;
  }
}
