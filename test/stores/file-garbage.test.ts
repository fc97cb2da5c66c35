/** Rows and messages that Holdfast did not write: the file store refuses them by name. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { HoldfastError, StoreError } from "../../src/errors.js";
import { channels } from "../../src/events.js";
import { Holdfast } from "../../src/holdfast.js";
import type { Lease } from "../../src/lease/lease.js";
import { fileStore } from "../../src/stores/file/index.js";
import { openSqlite, type Sqlite, type Value } from "../../src/stores/file/sqlite.js";
import { seededGarbage } from "../fixtures/garbage.js";
import { watchHost } from "../fixtures/host.js";
import { waitUntil } from "../servers/wait-until.js";

let folder: string;
let path: string;
let host: ReturnType<typeof watchHost>;
let database: Sqlite | undefined;
const opened: Holdfast[] = [];
const heard: unknown[] = [];
const onEvent = (event: unknown): void => void heard.push(event);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-file-"));
  path = join(folder, "locks.db");
  host = watchHost();
  heard.length = 0;
  subscribe(channels.foreign, onEvent);
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((locks) => locks.close()));
  database?.close();
  database = undefined;
  unsubscribe(channels.foreign, onEvent);
  rmSync(folder, { recursive: true, force: true });
  expect(await host.end()).toEqual([]);
});

function open(): Holdfast {
  const locks = new Holdfast(fileStore({ path }));
  opened.push(locks);
  return locks;
}

/** Writes to the file without the store. */
function write(sql: string, ...values: Value[]): void {
  database ??= openSqlite(path);
  database.exec("PRAGMA busy_timeout = 2000");
  database.run(sql, values);
}

async function refused(work: Promise<unknown>): Promise<void> {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StoreError);
  expect(error).toMatchObject({ code: "HF_STORE", retryable: false });
  expect(String(error)).toMatch(/data that is not ours at table \w+, key "l:spoilt"/);
}

const holder = {
  owner: "o",
  client: "c",
  mode: "exclusive",
  weight: 1,
  limit: 1,
  ttlUs: 1,
  span: 1,
  meta: "{}",
  token: 1,
  expiryUs: 9e15,
  grantedUs: 1,
  confirmed: true,
};

const waiter = { ...holder, offerUs: 1, sinceUs: 1 };

test.each([
  ["no JSON", "garbage"],
  ["no object", "7"],
  ["no list", JSON.stringify({ holders: 5 })],
  ["a holder that is none", JSON.stringify({ holders: [null] })],
  ["a token in words", JSON.stringify({ holders: [{ ...holder, token: "twelve" }] })],
  ["no token", JSON.stringify({ holders: [{ ...holder, token: undefined }] })],
  ["a token that is too large", JSON.stringify({ holders: [{ ...holder, token: 1e300 }] })],
  ["an expiry in words", JSON.stringify({ holders: [{ ...holder, expiryUs: "soon" }] })],
  ["a sum that is none", JSON.stringify({ holderRows: { count: "3" } })],
  ["a mark that is none", JSON.stringify({ mark: [] })],
  ["a waiter without its client", JSON.stringify({ waiters: [waiter], clients: [] })],
])("a row with %s ends calls on its name only", async (_, body) => {
  const locks = open();
  await (await locks.mutex("whole").acquire()).release();
  write("INSERT INTO name VALUES (1, 'l:spoilt', ?)", body);
  const [spoilt, whole] = [locks.mutex("spoilt"), locks.mutex("whole")];
  const [, lease] = await Promise.all([refused(spoilt.tryAcquire()), whole.acquire()]);
  await Promise.all([refused(spoilt.acquire()), lease.release()]);
  await refused(locks.inspect("spoilt"));
  const held = await locks.mutex("listed").acquire();
  const names: string[] = [];
  for await (const { name } of locks.list()) names.push(name);
  expect(names).toEqual(["listed"]);
  expect(heard).toMatchObject([{ store: "file", where: 'key "l:spoilt"' }]);
  await held.release();
  expect(database?.get("SELECT body FROM name WHERE key = 'l:spoilt'", [])).toEqual([body]);
  write("DELETE FROM name WHERE key = 'l:spoilt'");
  await (await spoilt.acquire()).release();
});

test("a last token that is not a number is ignored: the clock gives the next one", async () => {
  const locks = open();
  for (const sql of ["'x'", "x'00ff'", "-5", "1.5e300"]) {
    const before = await locks.mutex("a").acquire();
    await before.release();
    write(`UPDATE space SET token = ${sql}`);
    const lease = await locks.mutex("a").acquire();
    expect(lease.token).toBeGreaterThan(before.token);
    await lease.release();
  }
});

test("unreadable rows do not block the takeover of a file from another boot", async () => {
  const locks = open();
  await (await locks.mutex("whole").acquire()).release();
  for (const body of ["garbage", '{"holders":["x",3,{"ttlUs":"x","expiryUs":{}}]}']) {
    write("INSERT OR REPLACE INTO name VALUES (1, 'l:spoilt', ?)", body);
    write("UPDATE machine SET identity = 'another boot', watch = 'garbage'");
    await (await locks.mutex("whole").acquire()).release();
    await refused(locks.inspect("spoilt"));
  }
});

test("foreign messages are ignored and reported", async () => {
  const locks = open();
  const others = open();
  const held = await others.mutex("m").acquire();
  const waiting = locks.mutex("m").acquire({ fairness: "strict" });
  await waitUntil(async () => (await others.inspect("m")).waiters.length === 1, {
    what: "a waiter",
  });
  const sockets = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isSocket(),
  );
  expect(sockets.length).toBeGreaterThan(0);
  const [{ parentPath = "", name: client = "" } = {}] = sockets;
  const socket = connect(join(parentPath, client));
  await once(socket, "connect");
  const about = { client, key: "l:m", type: "granted" };
  const lines = [
    "x",
    "{}",
    "null",
    '"text"',
    JSON.stringify({ ...about, grant: null }),
    JSON.stringify({ ...about, grant: { owner: "o", token: "x", span: 1 } }),
    JSON.stringify({ ...about, type: "revoked", owner: "o", token: -1, reason: "" }),
  ];
  socket.end(`${lines.join("\n")}\n`);
  await waitUntil(() => heard.length === lines.length, { what: "all are reported" });
  expect(heard[0]).toMatchObject({ store: "file", where: "a message to this client" });
  await held.release();
  await (await waiting).release();
});

describe("garbage at random", () => {
  const isFull = Boolean(process.env.HOLDFAST_FULL);
  const garbage = seededGarbage();
  const rounds = isFull ? 300 : 25;
  const COLUMNS: Record<string, readonly string[]> = {
    name: ["body"],
    holder: ["token", "owner", "client", "expiry", "confirmed", "body"],
    waiter: ["client", "place", "owner", "body"],
    client: ["id", "touch", "gone", "waiting", "suspect", "place"],
    tombstone: ["owner", "until", "reason"],
  };

  test(`seed ${garbage.seed}`, { timeout: isFull ? 600_000 : 120_000 }, async () => {
    const locks = open();
    const others = open();
    let isOver = false;
    let turns = 0;
    const work = (async () => {
      for (; !isOver; turns += 1) {
        const names = ["a", "b", "c"].map((name) => locks.mutex(name));
        const leases = await Promise.all(names.map((lock) => lock.acquire()));
        for (const lease of leases) expect(await lease.release()).toBe(true);
        await new Promise((resume) => setTimeout(resume, 1));
      }
    })();
    work.catch(() => {});
    for (let round = 0; round < rounds; round += 1) await damageOnce(locks, others, round);
    isOver = true;
    await work;
    expect(turns).toBeGreaterThan(rounds);
  });

  /** Puts a name into some state, damages one thing, makes calls, and removes the name. */
  async function damageOnce(locks: Holdfast, others: Holdfast, round: number): Promise<void> {
    const name = `spoilt-${round}`;
    const short = { ttlMs: 400, waitMs: 300, storeTimeoutMs: 1_000, fairness: "strict" } as const;
    // Sometimes more than one row keeps.
    const many = garbage.pick([1, 2, 12]);
    const lock = garbage.pick([() => locks.mutex(name), () => locks.semaphore(name, 10)])();
    const other = garbage.pick([() => others.mutex(name), () => others.semaphore(name, 2)])();
    const all = [...Array(many).keys()];
    const held = await Promise.all(all.map(() => lock.tryAcquire(short)));
    const waiting = all.map(() => settle(other.acquire(short)));
    await new Promise((resume) => setImmediate(resume));
    for (let times = garbage.whole(1, 4); times > 0; times -= 1) damage(`l:${name}`);
    const startMs = performance.now();
    await Promise.all([
      ...waiting,
      settle(lock.tryAcquire(short)),
      settle(other.acquire(short)),
      settle(locks.inspect(name)),
      settle(others.revoke(name, { token: held[0]?.token ?? 1n, reason: "stuck" })),
      ...held.map((lease) => lease && settle(lease.renew())),
    ]);
    await Promise.all(held.map((lease) => lease && settle(lease.release())));
    expect(performance.now() - startMs).toBeLessThan(10_000);
    for (const table of Object.keys(COLUMNS)) {
      write(`DELETE FROM ${table} WHERE key = ?`, `l:${name}`);
    }
    await (await lock.acquire({ ...short, waitMs: 5_000, storeTimeoutMs: 5_000 })).release();
  }

  function damage(key: string): void {
    const table = garbage.pick(["name", "name", ...Object.keys(COLUMNS)]);
    const column = garbage.pick(COLUMNS[table] ?? []);
    database ??= openSqlite(path);
    const sql = `SELECT ${column} FROM ${table} WHERE key = ? AND typeof(${column}) <> 'blob'`;
    let before: unknown;
    try {
      [before] = database.get(sql, [key]) ?? [];
    } catch {
      // An earlier damage made it too large to be read.
    }
    if (before === undefined) return;
    const value = garbage.pick([
      `'${garbage.text(String(before)).replaceAll("'", "''").replaceAll("\u0000", "")}'`,
      garbage.pick(["NULL", "x'00ff'", "-1", "9223372036854775807", "1.5", "1e300", "0"]),
    ]);
    try {
      write(`UPDATE ${table} SET ${column} = ${value} WHERE key = ?`, key);
    } catch (error) {
      // The schema refuses some values.
      if (!/constraint/i.test(String(error))) throw error;
    }
  }
});

function settle(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    (value) => (isLease(value) ? value.release() : value),
    (error: unknown) => {
      if (!(error instanceof HoldfastError)) throw error;
      return error;
    },
  );
}

function isLease(value: unknown): value is Lease {
  return typeof value === "object" && value !== null && "release" in value;
}
