/**
 * With a synchronous standby no grant counts before the standby has it. The server says by a
 * warning that it gave up waiting; every role here hides warnings by default.
 */
import postgres from "postgres";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { Holdfast } from "../../src/api/holdfast.js";
import { postgresStore } from "../../src/stores/postgres/index.js";
import { startPgbouncer } from "../servers/pgbouncer.js";
import { type PostgresServer, startPostgres } from "../servers/postgres.js";
import { startStandby } from "../servers/postgres-standby.js";
import { waitUntil } from "../servers/wait-until.js";
import { Trial, urlOf } from "./trial.js";

let primary: PostgresServer;
let standby: PostgresServer;
let trial: Trial;
beforeAll(async () => {
  primary = await startPostgres();
  standby = await startStandby(primary);
  await primary.ask("alter system set synchronous_standby_names = '*'");
  await primary.ask("select pg_reload_conf()");
  const isSynchronous = "select 1 from pg_stat_replication where sync_state = 'sync'";
  await waitUntil(async () => (await primary.ask(isSynchronous)).length === 1, { what: "sync" });
  await primary.ask("alter role postgres set client_min_messages = error");
});
afterAll(async () => {
  await standby?.close();
  await primary?.close();
});
beforeEach(() => {
  trial = new Trial();
});
afterEach(async () => {
  standby.resume();
  await trial.close();
});

const open = (port: number): Promise<Holdfast> =>
  trial.open(`${urlOf(port)}?hasSynchronousStandby=true`);

/** The commits that wait for the standby: the process of the server, and its transaction. */
async function waitingCommits(): Promise<{ pid: number; key: string }[]> {
  const text = "select pid, xact_start::text as start from pg_stat_activity where wait_event = $1";
  const rows = await primary.ask(text, ["SyncRep"]);
  return rows.map(({ pid, start }) => ({ pid: Number(pid), key: `${pid} ${start}` }));
}

/** Makes a commit that waits for the standby go on without it. */
async function giveUpWaiting(): Promise<void> {
  await waitUntil(async () => (await waitingCommits()).length > 0, { what: "a commit waits" });
  const [first] = await waitingCommits();
  await primary.ask("select pg_cancel_backend($1)", [first?.pid]);
  await waitUntil(async () => !(await waitingCommits()).some(({ key }) => key === first?.key), {
    what: "the commit goes on",
  });
}

/** Whether the promise settles before a further commit waits for the standby. */
async function isBelievedEarly(promise: Promise<unknown>): Promise<boolean> {
  let isSettled = false;
  const settle = (): void => {
    isSettled = true;
  };
  promise.then(settle, settle);
  await waitUntil(async () => isSettled || (await waitingCommits()).length > 0, {
    what: "an answer, or a commit that waits",
  });
  return isSettled;
}

function openByPostgres(): Holdfast {
  const sql = postgres(urlOf(primary.port));
  trial.closeLater(() => sql.end());
  const { namespace } = trial;
  return trial.add(new Holdfast(postgresStore({ sql, namespace, hasSynchronousStandby: true })));
}

const WAYS = ["no pooler", "a pooler", "the package postgres"];

test.for(WAYS)("a grant waits for the standby: %s", async (way) => {
  const pooler =
    way === "a pooler"
      ? await startPgbouncer({ targetPort: primary.port, mode: "transaction" })
      : null;
  trial.closeLater(() => pooler?.close());
  const locks =
    way === "the package postgres" ? openByPostgres() : await open(pooler?.port ?? primary.port);
  await trial.turn(locks);
  await standby.pause();
  const acquiring = trial.acquire(locks, { ttlMs: 60_000, storeTimeoutMs: 30_000 });
  acquiring.catch(() => {});
  await giveUpWaiting();
  // The store asks again. The row shows the grant, and the standby still does not have it.
  expect(await isBelievedEarly(acquiring)).toBe(false);
  await giveUpWaiting();
  expect(await isBelievedEarly(acquiring)).toBe(false);
  standby.resume();
  expect(await (await acquiring).release()).toBe(true);
});

test("a handed-off grant waits for the standby", async () => {
  const [a, b] = [await open(primary.port), await open(primary.port)];
  const lease = await trial.acquire(a, { ttlMs: 60_000 });
  const waiting = trial.acquire(b, { ttlMs: 60_000, storeTimeoutMs: 30_000 });
  waiting.catch(() => {});
  await trial.waiting(a, 1);
  await standby.pause();
  const releasing = lease.release();
  releasing.catch(() => {});
  await giveUpWaiting();
  // The handoff is visible, and its message is on its way; the standby does not have it.
  expect(await isBelievedEarly(waiting)).toBe(false);
  await giveUpWaiting();
  expect(await isBelievedEarly(waiting)).toBe(false);
  standby.resume();
  await (await waiting).release();
  await releasing.catch(() => {});
});
