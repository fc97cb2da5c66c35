/** Rows and messages that Holdfast did not write: the file store refuses them by name. */

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Holdfast } from "../../src/api/holdfast.js";
import { HoldfastError, StoreError } from "../../src/errors/index.js";
import { channels } from "../../src/events/events.js";
import type { Lease } from "../../src/lease/lease.js";
import { openSqlite, type Sqlite, type Value } from "../../src/stores/file/client.js";
import { isFull } from "../fixtures/depth.js";
import { seededGarbage } from "../fixtures/garbage.js";
import { watchHost } from "../fixtures/host.js";
import { Stopwatch } from "../fixtures/stopwatch.js";
import { waitUntil } from "../servers/wait-until.js";
import { untilWaiting } from "../stores/trial.js";
import { FileTrial } from "./trial.js";

let trial: FileTrial;
let host: ReturnType<typeof watchHost>;
let database: Sqlite | undefined;
const heard: unknown[] = [];
const onEvent = (event: unknown): void => void heard.push(event);

beforeEach(() => {
  trial = new FileTrial();
  host = watchHost();
  heard.length = 0;
  subscribe(channels.foreign, onEvent);
});
afterEach(async () => {
  database?.close();
  database = undefined;
  await trial.close();
  unsubscribe(channels.foreign, onEvent);
  expect(await host.end()).toEqual([]);
});

/** Writes to the file without the store. */
function write(sql: string, ...values: Value[]): void {
  database ??= openSqlite(trial.path);
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

const terms = ["o", "c", "exclusive", 1, 1, 1, 1, "{}"];
const grant = [1, 1, 9e15, true];
const documentWith = (
  parts: Partial<Record<"holders" | "waiters" | "clients" | "mark", unknown>>,
) => {
  const { holders = [], waiters = [], clients = [], mark = null } = parts;
  return JSON.stringify([holders, waiters, clients, [], mark]);
};

test.each([
  ["no JSON", "garbage"],
  ["no list", "7"],
  ["an object", "{}"],
  ["no list of holders", documentWith({ holders: 5 })],
  ["a holder that is not a holder", documentWith({ holders: [null] })],
  ["a token in words", documentWith({ holders: [[...terms, "twelve", 1, 9e15, true]] })],
  ["no token", documentWith({ holders: [terms] })],
  ["a token that is too large", documentWith({ holders: [[...terms, 1e300, 1, 9e15, true]] })],
  ["an expiry in words", documentWith({ holders: [[...terms, 1, 1, "soon", true]] })],
  ["two holders with one owner", documentWith({ holders: Array(2).fill([...terms, ...grant]) })],
  ["a mark that is not a mark", documentWith({ mark: [] })],
  ["a waiter without its client", documentWith({ waiters: [[...terms, 1, 1]] })],
  ["a client without a waiter", documentWith({ clients: [["c", 1, 1, false]] })],
])("a row with %s ends calls on its name only", async (_, body) => {
  const locks = trial.open();
  await (await locks.mutex("whole").acquire()).release();
  write("INSERT INTO name VALUES ('', 'l:spoilt', ?)", body);
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
  const locks = trial.open();
  for (const sql of ["'x'", "x'00ff'", "-5", "1.5e300"]) {
    const before = await locks.mutex("a").acquire();
    await before.release();
    write(`UPDATE name SET body = ${sql} WHERE key = ''`);
    const lease = await locks.mutex("a").acquire();
    expect(lease.token).toBeGreaterThan(before.token);
    await lease.release();
  }
});

test("unreadable rows do not block the takeover of a file from another boot", async () => {
  const locks = trial.open();
  await (await locks.mutex("whole").acquire()).release();
  for (const body of ["garbage", '{"holders":["x",3,{"ttlUs":"x","expiryUs":{}}]}']) {
    write("INSERT OR REPLACE INTO name VALUES ('', 'l:spoilt', ?)", body);
    write("UPDATE machine SET identity = 'another boot', watch = 'garbage'");
    await (await locks.mutex("whole").acquire()).release();
    await refused(locks.inspect("spoilt"));
  }
});

test("foreign messages are ignored and reported", async () => {
  const locks = trial.open();
  const others = trial.open();
  const held = await others.mutex("m").acquire();
  const waiting = locks.mutex("m").acquire({ fairness: "strict" });
  await untilWaiting(others, "m");
  const sockets = readdirSync(trial.folder, { recursive: true, withFileTypes: true }).filter(
    (entry) => entry.isSocket(),
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
  const garbage = seededGarbage();
  const rounds = isFull ? 300 : 25;

  test(`seed ${garbage.seed}`, { timeout: isFull ? 600_000 : 120_000 }, async () => {
    const locks = trial.open();
    const others = trial.open();
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
    const patient = { waitMs: 30_000, storeTimeoutMs: 30_000 };
    const many = garbage.pick([1, 2, 12]);
    const lock = garbage.pick([() => locks.mutex(name), () => locks.semaphore(name, 10)])();
    const other = garbage.pick([() => others.mutex(name), () => others.semaphore(name, 2)])();
    const all = [...Array(many).keys()];
    const tries = all.map(() => lock.tryAcquire({ ...short, storeTimeoutMs: 5_000 }));
    const held = await Promise.all(tries);
    const waiting = all.map(() => settle(other.acquire(short)));
    await new Promise((resume) => setImmediate(resume));
    for (let times = garbage.whole(1, 4); times > 0; times -= 1) damage(`l:${name}`);
    const watch = new Stopwatch();
    await Promise.all([
      ...waiting,
      settle(lock.tryAcquire(short)),
      settle(other.acquire(short)),
      settle(locks.inspect(name)),
      settle(others.revoke(name, { token: held[0]?.token ?? 1n, reason: "stuck" })),
      ...held.map((lease) => lease && settle(lease.renew())),
    ]);
    await Promise.all(held.map((lease) => lease && settle(lease.release())));
    watch.expectLessThan(10_000);
    write("DELETE FROM name WHERE key = ?", `l:${name}`);
    await (await lock.acquire({ ...short, ...patient })).release();
  }

  function damage(key: string): void {
    database ??= openSqlite(trial.path);
    const sql = "SELECT body FROM name WHERE key = ? AND typeof(body) <> 'blob'";
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
      write(`UPDATE name SET body = ${value} WHERE key = ?`, key);
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
