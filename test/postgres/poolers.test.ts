/** A pgbouncer in between: one that lends connections for a transaction, or for a session. */
import { channel } from "node:diagnostics_channel";
import pg from "pg";
import postgres from "postgres";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { Holdfast } from "../../src/api/holdfast.js";
import { channels } from "../../src/events/events.js";
import { type PostgresStoreOptions, postgresStore } from "../../src/stores/postgres/index.js";
import { Stopwatch } from "../fixtures/stopwatch.js";
import { type Pgbouncer, startPgbouncer } from "../servers/pgbouncer.js";
import { type PostgresServer, startPostgres } from "../servers/postgres.js";
import { waitUntil } from "../servers/wait-until.js";
import { Trial, useAll } from "./trial.js";

type Mode = "transaction" | "session";

let server: PostgresServer;
const poolers = new Map<Mode, Pgbouncer>();
let trial: Trial;
const polling: unknown[] = [];
const onPolling = (event: unknown): void => void polling.push(event);
beforeAll(async () => {
  server = await startPostgres();
  for (const mode of ["transaction", "session"] as const) {
    poolers.set(mode, await startPgbouncer({ targetPort: server.port, mode }));
  }
  channel(channels.polling).subscribe(onPolling);
});
afterAll(async () => {
  channel(channels.polling).unsubscribe(onPolling);
  for (const pooler of poolers.values()) await pooler.close();
  await server?.close();
});
beforeEach(() => {
  trial = new Trial();
  polling.length = 0;
});
afterEach(() => trial.close());

function open(library: "pg" | "postgres", url: string): Holdfast {
  const options = (): PostgresStoreOptions => {
    const { namespace } = trial;
    if (library === "pg") {
      const pool = new pg.Pool({ connectionString: url });
      trial.closeLater(() => pool.end());
      return { pool, namespace };
    }
    const sql = postgres(url);
    trial.closeLater(() => sql.end());
    return { sql, namespace };
  };
  return trial.add(new Holdfast(postgresStore(options())));
}

const cases = (["transaction", "session"] as const).flatMap((mode) =>
  (["pg", "postgres"] as const).map((library) => [mode, library] as const),
);

test.for(cases)("a pooler for each %s, by %s", async ([mode, library]) => {
  const url = poolers.get(mode)?.url ?? "";
  const [a, b] = [open(library, url), open(library, url)];
  await useAll(trial, a, b);
  if (mode === "session") {
    await trial.handOff(a, b);
    expect(polling).toEqual([]);
    return;
  }
  // The test of LISTEN takes a while.
  await waitUntil(() => polling.length === 2, { what: "both clients say that they poll" });
  expect(polling[0]).toEqual({ store: "postgres", namespace: trial.namespace, everyMs: 200 });
  const lease = await trial.acquire(a, { ttlMs: 20_000 });
  const waiting = trial.acquire(b, { ttlMs: 20_000 });
  await trial.waiting(a, 1);
  const watch = new Stopwatch();
  await lease.release();
  await (await waiting).release();
  // Without the poll, the waiter would ask after a sixth of the ttl.
  watch.expectLessThan(2_000);
  expect(polling).toHaveLength(2);
});

test("settings of the store reach no other program through a pooler", async () => {
  const url = poolers.get("transaction")?.url ?? "";
  const locks = open("pg", url);
  await trial.turn(locks);
  await waitUntil(() => polling.length === 1, { what: "the client says that it polls" });
  const others = Array.from({ length: 5 }, () => new pg.Client({ connectionString: url }));
  await Promise.all(others.map((other) => other.connect()));
  for (const other of others) {
    const { rows } = await other.query("show statement_timeout");
    expect(rows).toEqual([{ statement_timeout: "0" }]);
    await other.query("begin");
  }
  await Promise.all(others.map((other) => other.end()));
});

test("a pooler that restarts, and a server that restarts behind it", async () => {
  const pooler = poolers.get("transaction");
  const [a, b] = [open("pg", pooler?.url ?? ""), open("pg", pooler?.url ?? "")];
  const lease = await trial.acquire(a, { ttlMs: 20_000 });
  const waiting = trial.acquire(b, { ttlMs: 20_000 });
  await trial.waiting(a, 1);
  await pooler?.kill();
  await pooler?.start();
  await server.kill();
  await server.start();
  await waitUntil(async () => (await lease.renew()) === undefined, { what: "a renewal" });
  expect(await lease.release()).toBe(true);
  expect(await (await waiting).release()).toBe(true);
});
