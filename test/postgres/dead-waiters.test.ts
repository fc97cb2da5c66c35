/**
 * Waiters whose processes were killed, or whose connections ended: the server knows it by their
 * advisory locks, and passes them over.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { postgresMigration } from "../../src/stores/postgres/index.js";
import { startProxy } from "../faults/proxy.js";
import { Stopwatch } from "../fixtures/stopwatch.js";
import { type Pgbouncer, startPgbouncer } from "../servers/pgbouncer.js";
import { type PostgresServer, startPostgres } from "../servers/postgres.js";
import { waitUntil } from "../servers/wait-until.js";
import { Contenders } from "../stores/contenders.js";
import { Trial, urlOf } from "./trial.js";

const WAITERS = 10;
/** A pooler has 20 connections, and each client opens a second one for its test of LISTEN. */
const POOLED_WAITERS = 5;
/** Their offer lasts as long: each one that is offered the lock would cost this time. */
const WAITER_TTL_MS = 1_500;
const LIMIT_MS = 300;

let server: PostgresServer;
const poolers: Pgbouncer[] = [];
let trial: Trial;
beforeAll(async () => {
  server = await startPostgres();
  // The role may call the functions of the schema, which another role owns.
  await server.ask("create role app login");
  const owner = await server.client();
  await owner.query(postgresMigration({ role: "app" }));
  await owner.end();
});
afterAll(async () => {
  for (const pooler of poolers) await pooler.close();
  await server?.close();
});
beforeEach(() => {
  trial = new Trial();
});
afterEach(() => trial.close());

async function startPooler(mode: "transaction" | "session"): Promise<Pgbouncer> {
  const pooler = await startPgbouncer({ targetPort: server.port, mode });
  poolers.push(pooler);
  return pooler;
}

async function rowsIn(from: string): Promise<number> {
  const [row] = await server.ask(`select count(*) from ${from}`);
  return Number(row?.count);
}

const connections = (): Promise<number> =>
  rowsIn("pg_stat_activity where application_name = 'holdfast'");
/** Waiting clients whose connections have their advisory locks. */
const knownWaiters = (): Promise<number> =>
  rowsIn(`holdfast.client join pg_locks on locktype = 'advisory' and objsubid = 1
    and connection = (classid::bigint << 32) + objid::bigint
    where namespace = '${trial.namespace}'`);
const advisoryLocks = (): Promise<number> => rowsIn("pg_locks where locktype = 'advisory'");

/**
 * The lock is held, processes wait, and then a live one. When the server knows all of them, the
 * processes are killed, and when it has noticed that, the lock is released. The live one has it at
 * once.
 */
async function expectServed(
  url: string,
  count: number,
  isKnown: () => Promise<boolean>,
  isNoticed: () => Promise<boolean>,
): Promise<void> {
  const [holder, live] = [await trial.open(url), await trial.open(url)];
  const lease = await trial.acquire(holder, { ttlMs: 60_000 });
  const namespace = `namespace=${trial.namespace}`;
  await using waiters = new Contenders(`${url}?${namespace}`, trial.name);
  await Promise.all(Array.from({ length: count }, () => waiters.start(1, WAITER_TTL_MS)));
  await trial.waiting(holder, count);
  const served = trial.acquire(live);
  await trial.waiting(holder, count + 1);
  await waitUntil(isKnown, { what: "the server knows all waiters" });
  await Promise.all(waiters.processes.map((one) => one.kill()));
  await waitUntil(isNoticed, { what: "the server has noticed", everyMs: 1 });
  const watch = new Stopwatch();
  expect(await lease.release()).toBe(true);
  await (await served).release();
  watch.expectLessThan(LIMIT_MS);
}

test("a live waiter is served at once after ten that were killed", async () => {
  const url = server.url.replace("//postgres@", "//app@");
  await expectServed(
    url,
    WAITERS,
    async () => (await connections()) === WAITERS + 2,
    async () => (await connections()) === 2,
  );
});

test("the same behind a pooler that lends connections for a session", async () => {
  const { url } = await startPooler("session");
  await expectServed(
    url,
    POOLED_WAITERS,
    async () => (await knownWaiters()) === POOLED_WAITERS + 1,
    async () => (await knownWaiters()) === 1,
  );
});

test("behind a pooler for each transaction nothing is known, and no lock is left", async () => {
  const { url } = await startPooler("transaction");
  const [a, b] = [await trial.open(url), await trial.open(url)];
  const lease = await trial.acquire(a, { ttlMs: 20_000 });
  const waiting = trial.acquire(b);
  await trial.waiting(a, 1);
  const rows = await server.ask("select connection from holdfast.client where namespace = $1", [
    trial.namespace,
  ]);
  expect(rows).toEqual([{ connection: null }]);
  // Those of the tests before end with their connections.
  await waitUntil(async () => (await advisoryLocks()) === 0, { what: "no advisory lock" });
  await lease.release();
  await (await waiting).release();
});

test("a waiter that is cut off is passed over, and keeps its place", async () => {
  const proxy = await startProxy({ targetPort: server.port });
  trial.closeLater(() => proxy.close());
  const [holder, far, near] = [
    await trial.open(server.url),
    await trial.open(urlOf(proxy.port)),
    await trial.open(server.url),
  ];
  const options = { ttlMs: 60_000, storeTimeoutMs: 60_000 };
  const lease = await trial.acquire(holder, options);
  const first = trial.acquire(far, options);
  await trial.waiting(holder, 1);
  const second = trial.acquire(near, options);
  await trial.waiting(holder, 2);
  const third = trial.acquire(near, options);
  await trial.waiting(holder, 3);
  const before = await connections();
  proxy.cut();
  await waitUntil(async () => (await connections()) === before - 1, { what: "one has ended" });
  expect(await lease.release()).toBe(true);
  const passed = await second;
  await proxy.heal();
  await waitUntil(
    async () => {
      const rows = await server.ask(
        "select from holdfast.client where namespace = $1 and not unresponsive",
        [trial.namespace],
      );
      return rows.length === 2;
    },
    { what: "the first waiter has spoken again" },
  );
  expect(await passed.release()).toBe(true);
  expect(await (await first).release()).toBe(true);
  expect(await (await third).release()).toBe(true);
});

test("no other role can make a live waiter look dead", async () => {
  await server.ask("create role stranger login");
  const connectionString = server.url.replace("//postgres@", "//stranger@");
  const stranger = await server.client({ connectionString });
  trial.closeLater(() => stranger.end());
  const [holder, first, second] = [
    await trial.open(server.url),
    await trial.open(server.url),
    await trial.open(server.url),
  ];
  const options = { ttlMs: 60_000, storeTimeoutMs: 60_000 };
  const lease = await trial.acquire(holder, options);
  const served = trial.acquire(first, options);
  await trial.waiting(holder, 1);
  const later = trial.acquire(second, options);
  await trial.waiting(holder, 2);
  // Every role sees the keys of all advisory locks.
  const keys = "(classid::bigint << 32) + objid::bigint";
  const { rows } = await stranger.query(`select pg_advisory_unlock(${keys}) as is_freed,
    pg_try_advisory_lock(${keys}) or pg_try_advisory_lock_shared(${keys}) as is_taken
    from pg_locks where locktype = 'advisory' and objsubid = 1`);
  expect(rows).toEqual(rows.map(() => ({ is_freed: false, is_taken: false })));
  expect(rows.length).toBeGreaterThanOrEqual(3);
  expect(await lease.release()).toBe(true);
  expect(await (await served).release()).toBe(true);
  expect(await (await later).release()).toBe(true);
});
