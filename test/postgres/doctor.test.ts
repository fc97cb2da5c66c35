/** Servers that are configured wrongly on purpose, and good ones. */
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connect } from "../../src/api/connect.js";
import { Holdfast } from "../../src/api/holdfast.js";
import { type PostgresStoreOptions, postgresStore } from "../../src/stores/postgres/index.js";
import { startProxy } from "../faults/proxy.js";
import { startRewritingProxy } from "../faults/rewriting-proxy.js";
import { makeClocks } from "../servers/clock-shift.js";
import { startPgbouncer } from "../servers/pgbouncer.js";
import { type PostgresServer, startPostgres } from "../servers/postgres.js";
import { startStandby } from "../servers/postgres-standby.js";
import { waitUntil } from "../servers/wait-until.js";
import { type Examined, examined, expectFound, expectGood } from "../stores/examined.js";

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres({
    settings: { max_connections: "40", max_prepared_transactions: "2" },
  });
  await (await connect(server.url)).close();
});
afterAll(() => server.close());

async function examine(
  connectionString: string,
  options: Partial<PostgresStoreOptions> = {},
  ttlMs?: number,
): Promise<Examined> {
  const client = new pg.Client({ connectionString });
  return await examined(new Holdfast(postgresStore({ client, ...options })), ttlMs);
}

/** Settings of all new connections. */
async function withSettings<T>(settings: string[], work: () => Promise<T>): Promise<T> {
  for (const setting of settings) await server.ask(`alter role postgres set ${setting}`);
  try {
    return await work();
  } finally {
    await server.ask("alter role postgres reset all");
  }
}

test("a server with its defaults is good", async () => {
  const found = await examined(await connect(server.url));
  expectGood(found);
  expect(found.ids("skipped", "note")).toEqual([]);
  expect(found.survives("The server restarts or crashes")).toBe(true);
});

test("relaxed commits, and a standby that was promised, are found", async () => {
  const found = await withSettings(["synchronous_commit = off"], () => {
    return examine(server.url, { hasSynchronousStandby: true });
  });
  expectFound(found, "postgres/durability", "warning");
  expectFound(found, "postgres/standbys", "danger");
});

test("an old server is found, and a long way to it", async () => {
  const [row] = await server.ask("show server_version_num");
  const version = String(row?.server_version_num);
  await using old = await startRewritingProxy(server.port, version, "120022");
  const found = await examine(server.url.replace(`${server.port}`, `${old.port}`));
  expectFound(found, "postgres/version", "danger");
  await using proxy = await startProxy({ targetPort: server.port });
  proxy.delay("replies", 20);
  const slow = await examine(server.url.replace(`${server.port}`, `${proxy.port}`), {}, 50);
  expectFound(slow, "postgres/round-trip", "warning");
});

test("a clock that is wrong or jumps is found", async (context) => {
  const clocks = makeClocks();
  if (!clocks) return context.skip("a C compiler and LD_PRELOAD are needed");
  try {
    const clock = clocks.clock("doctor");
    await using shifted = await startPostgres({ env: clock.env });
    await (await connect(shifted.url)).close();
    clock.set(7_200_000);
    expectFound(await examine(shifted.url), "postgres/clock-skew", "warning");
    let isOver = false;
    const examining = examine(shifted.url).finally(() => {
      isOver = true;
    });
    for (let byMs = 100; !isOver; byMs += 100) {
      clock.set(byMs);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    expectFound(await examining, "postgres/clock-drift", "danger");
  } finally {
    clocks.end();
  }
});

test("a pooler that lends connections for a transaction is found", async () => {
  await using pooler = await startPgbouncer({ targetPort: server.port, mode: "transaction" });
  // A pooler lends the same server process again, unless another client has it.
  const found = await withSettings(["default_transaction_isolation = serializable"], () => {
    return examine(pooler.url);
  });
  expectFound(found, "postgres/pooler", "warning");
  expectFound(found, "postgres/messages", "warning");
  expectFound(found, "postgres/isolation", "danger");
  await using session = await startPgbouncer({ targetPort: server.port, mode: "session" });
  expectGood(await examine(session.url));
});

test("old snapshots are found, of sessions and of prepared transactions", async () => {
  const client = await server.client();
  await client.query("begin isolation level repeatable read");
  await client.query("select 1");
  const isOld = async (): Promise<boolean> => {
    const age = "select max(now() - xact_start) > interval '1 s' as is_old from pg_stat_activity";
    const [row] = await server.ask(`${age} where backend_xmin is not null`);
    return row?.is_old === true;
  };
  await waitUntil(isOld, { what: "a snapshot that is a second old" });
  expectFound(await examine(server.url, {}, 50), "postgres/snapshots", "warning");
  expectFound(await examine(server.url, {}, 1_000), "postgres/snapshots", "note");
  await client.query("commit");
  await client.query("begin");
  await client.query("create table prepared (a int)");
  await client.query("prepare transaction 'forgotten'");
  await client.end();
  const found = await examine(server.url, {}, 1);
  expect(found.of("postgres/snapshots").what).toContain("the prepared transaction forgotten");
  await server.ask("rollback prepared 'forgotten'");
});

test("a queue of messages that is full is found", async () => {
  await using full = await startRewritingProxy(server.port, '"usage" : 0', '"usage" : 1');
  const found = await examine(server.url.replace(`${server.port}`, `${full.port}`));
  expectFound(found, "postgres/notify-queue", "warning");
});

test("scarce connections are found", async () => {
  const idle = await Promise.all(Array.from({ length: 33 }, () => server.client()));
  try {
    expectFound(await examine(server.url), "postgres/connections", "warning");
  } finally {
    await Promise.all(idle.map((client) => client.end()));
  }
});

test("rights and functions that are missing are found", async () => {
  await server.ask("create role app login");
  await server.ask("create database empty");
  await server.ask("revoke create on database empty from public");
  const url = (database: string): string => `postgres://app@127.0.0.1:${server.port}/${database}`;
  expectFound(await examine(url("postgres")), "postgres/rights", "danger");
  expectFound(await examine(url("empty")), "postgres/schema", "danger");
  const owner = await examine(`postgres://postgres@127.0.0.1:${server.port}/empty`);
  expectFound(owner, "postgres/schema", "note");
  const client = await server.client({
    connectionString: server.url.replace(/postgres$/, "empty"),
  });
  expect((await client.query("select to_regnamespace('holdfast') as s")).rows).toEqual([
    { s: null },
  ]);
  await client.end();
});

test("another role that could have its code run by the functions is found", async () => {
  await server.ask("create role stranger login");
  await server.ask("grant usage, create on schema holdfast to stranger");
  expectFound(await examine(server.url), "postgres/owner", "danger");
  await server.ask("create function holdfast.mine() returns int language sql as 'select 1'");
  await server.ask("alter function holdfast.mine() owner to stranger");
  await server.ask("revoke create on schema holdfast from stranger");
  expectFound(await examine(server.url), "postgres/owner", "danger");
  await server.ask("drop function holdfast.mine()");
  await server.ask("grant trigger on holdfast.name to stranger");
  expectFound(await examine(server.url), "postgres/owner", "danger");
  const trigger = "create function public.theirs() returns trigger language plpgsql as 'begin end'";
  await server.ask(trigger);
  await server.ask("alter function public.theirs() owner to stranger");
  await server.ask(
    "create trigger t before truncate on holdfast.name execute function public.theirs()",
  );
  await server.ask("revoke trigger on holdfast.name from stranger");
  const found = await examine(server.url);
  expectFound(found, "postgres/owner", "danger");
  expect(found.of("postgres/owner").what).toContain("the trigger t on holdfast.name of stranger");
  await server.ask("drop trigger t on holdfast.name");
  expectGood(await examine(server.url));
});

test("locks that are not granted after a failover are found", async () => {
  await server.ask("update holdfast.server set timeline = 'another'");
  await server.ask("delete from holdfast.marker");
  const found = await examine(server.url);
  expectFound(found, "postgres/grants", "warning");
  expect(found.of("postgres/grants").what).toContain("No free lock is granted for another");
  await server.ask("update holdfast.marker set grants_from = 1");
  expectGood(await examine(server.url));
});

test("a standby is found, also one that is missed", async () => {
  await using primary = await startPostgres();
  await using standby = await startStandby(primary);
  await (await connect(primary.url)).close();
  expectFound(await examine(primary.url), "postgres/standbys", "note");
  await primary.ask("create role app login");
  await primary.ask("grant usage on schema holdfast to app");
  const url = `postgres://app@127.0.0.1:${primary.port}/postgres`;
  expect((await examine(url)).of("postgres/standbys")).toMatchObject({
    severity: "skipped",
    what: expect.stringContaining("pg_monitor"),
  });
  await primary.ask("alter system set synchronous_standby_names = 'away'");
  await primary.ask("select pg_reload_conf()");
  const isSet = async (): Promise<boolean> => {
    const [row] = await primary.ask("show synchronous_standby_names");
    return row?.synchronous_standby_names === "away";
  };
  await waitUntil(isSet, { what: "the setting is loaded" });
  expectFound(await examine(primary.url), "postgres/standbys", "danger");
  await expect(examine(standby.url)).rejects.toMatchObject({ code: "HF_STORE" });
});
