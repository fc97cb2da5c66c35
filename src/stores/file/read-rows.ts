/**
 * The rows of the lock file as the ledger may rely on them. SQLite keeps whatever is written to a
 * column, and any program may write it: every value is checked here, and what cannot be read
 * ends the command on its name before anything is written.
 */
import { foreignData, oneOf, record, text, Unreadable, whole } from "../../foreign-data.js";
import type { Occupancy } from "../../rules/fits.js";
import type { Holder, Tombstone, Waiter, WaitingClient } from "../../rules/ledger-state.js";
import type { Here, KeptClient, KeptMark, NameRecord, WaiterSum } from "./name-record.js";
import { type Row, resultCode } from "./sqlite.js";

/** SQLite itself could not read a value, such as JSON that is none. */
const SQL_ERROR = 1;

/** Reads rows of a name; where that fails by what they say, the error says where they are. */
export function reading<T>(table: string, [, key]: Here, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const code = resultCode(error);
    if (code !== undefined && code !== SQL_ERROR) throw error;
    throw foreignData(`table ${table}, key ${JSON.stringify(key)}`, error);
  }
}

const MODES = ["exclusive", "shared"] as const;

/** The row of a name; null where there is none. */
export function nameOf(here: Here, body: unknown): NameRecord {
  if (body === null) return {};
  return reading("name", here, () => {
    const { holders, holderRows, waiters, clients, waiterRows, mark, tombstones } = parsed(body);
    const read: NameRecord = {};
    if (holders !== undefined) read.holders = list(holders, readHolder);
    if (holderRows !== undefined) read.holderRows = readOccupancy(holderRows);
    if (waiters !== undefined) read.waiters = list(waiters, readWaiter);
    if (clients !== undefined) read.clients = list(clients, readKeptClient);
    if (read.waiters) checkClients(read.waiters, read.clients);
    if (waiterRows !== undefined) read.waiterRows = readWaiterSum(waiterRows);
    if (mark !== undefined) read.mark = readMark(mark);
    if (tombstones !== undefined) read.tombstones = readTombstones(tombstones);
    return read;
  });
}

export function holderOf([token, owner, client, expiryUs, confirmed, body]: Row): Holder {
  const columns = { token, owner, client, expiryUs, confirmed: isOne(confirmed) };
  return readHolder({ ...parsed(body), mode: "shared", ...columns });
}

export function waiterOf([owner, client, place, body]: Row): Waiter & { readonly place: number } {
  return { ...readWaiter({ ...parsed(body), owner, client }), place: whole(place) };
}

export function clientOf([id, touchUs, goneUs, waiting, suspect]: Row): WaitingClient {
  const kept = readKeptClient({ id, touchUs, goneUs, suspect: isOne(suspect) });
  return { ...kept, waiting: whole(waiting) };
}

export function tombstoneOf(owner: string, [untilUs, reason]: Row): Tombstone {
  return { owner, untilUs: whole(untilUs), reason: reason === null ? null : text(reason) };
}

function list<T>(value: unknown, read: (value: unknown) => T): T[] {
  if (!Array.isArray(value)) throw new Unreadable("a list");
  return value.map((one) => read(one));
}

/** The ledger passes over a waiter by its client: one without would be met for ever. */
function checkClients(waiters: readonly Waiter[], clients: readonly KeptClient[] = []): void {
  for (const { client } of waiters) {
    if (!clients.some(({ id }) => id === client)) throw new Unreadable("the client of each waiter");
  }
}

function parsed(body: unknown): Readonly<Record<string, unknown>> {
  return record(JSON.parse(text(body)));
}

function isOne(value: unknown): boolean {
  return oneOf([0, 1], value) === 1;
}

/** Written out: a spread takes several times as long, and this is in most commands. */
function readHolder(value: unknown): Holder {
  const fields = record(value);
  return {
    owner: text(fields.owner),
    client: text(fields.client),
    mode: oneOf(MODES, fields.mode),
    weight: whole(fields.weight),
    limit: whole(fields.limit),
    ttlUs: whole(fields.ttlUs),
    span: whole(fields.span),
    meta: text(fields.meta),
    token: whole(fields.token),
    expiryUs: whole(fields.expiryUs),
    grantedUs: whole(fields.grantedUs),
    confirmed: oneOf([true, false], fields.confirmed),
  };
}

function readWaiter(value: unknown): Waiter {
  const fields = record(value);
  return {
    owner: text(fields.owner),
    client: text(fields.client),
    mode: oneOf(MODES, fields.mode),
    weight: whole(fields.weight),
    limit: whole(fields.limit),
    ttlUs: whole(fields.ttlUs),
    offerUs: whole(fields.offerUs),
    span: whole(fields.span),
    meta: text(fields.meta),
    sinceUs: whole(fields.sinceUs),
  };
}

function readKeptClient(value: unknown): KeptClient {
  const { id, touchUs, goneUs, suspect } = record(value);
  return {
    id: text(id),
    touchUs: whole(touchUs),
    goneUs: whole(goneUs),
    suspect: oneOf([true, false], suspect),
  };
}

function readOccupancy(value: unknown): Occupancy {
  const { count, exclusive, weight, limit } = record(value);
  return {
    count: whole(count),
    exclusive: oneOf([true, false], exclusive),
    weight: whole(weight),
    limit: whole(limit),
  };
}

function readWaiterSum(value: unknown): WaiterSum {
  const { count, nextPlace, silentUs } = record(value);
  return { count: whole(count), nextPlace: whole(nextPlace), silentUs: whole(silentUs) };
}

function readMark(value: unknown): KeptMark {
  const { token, untilUs, meta, untilWallUs } = record(value);
  return {
    token: whole(token),
    untilUs: whole(untilUs),
    meta: text(meta),
    untilWallUs: whole(untilWallUs),
  };
}

export function readTombstones(value: unknown): { count: number; untilUs: number } {
  const { count, untilUs } = record(value);
  return { count: whole(count), untilUs: whole(untilUs) };
}
