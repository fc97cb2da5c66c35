/**
 * A primary and a standby: the failover to one that is asynchronous may lose the last commits, to
 * one that is synchronous it loses none.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type FaultProxy, startProxy } from "../faults/proxy.js";
import { LedgerFunctions } from "../fixtures/ledger-functions.js";
import { requestOf } from "../fixtures/ledger-script.js";
import { type PostgresServer, startPostgres } from "../servers/postgres.js";
import { promote, startStandby, untilInSync } from "../servers/postgres-standby.js";
import { waitUntil } from "../servers/wait-until.js";
import { Trial, urlOf } from "./trial.js";

let primary: PostgresServer;
let standby: PostgresServer;
let replication: FaultProxy;
let trial: Trial;
beforeAll(async () => {
  primary = await startPostgres();
  replication = await startProxy({ targetPort: primary.port });
  standby = await startStandby(primary, { through: replication.port });
});
afterAll(async () => {
  await standby?.close();
  await replication?.close();
  await primary?.close();
});
beforeEach(() => {
  trial = new Trial();
});
afterEach(() => trial.close());

test("a standby alone is refused, and among several hosts it is passed over", async () => {
  const both = await trial.open(urlOf(standby.port, primary.port));
  await trial.turn(both);
  await expect(trial.open(urlOf(standby.port))).rejects.toMatchObject({
    outcome: "not_applied",
    retryable: true,
    message: expect.stringContaining("is a standby, which is read-only"),
  });
});

test("a name whose grant a failover lost is not granted before that lease is over", async () => {
  // The holder of the lost grant does not know the new primary.
  const a = await trial.open(urlOf(primary.port));
  const [b, c] = [
    await trial.open(urlOf(primary.port, standby.port)),
    await trial.open(urlOf(primary.port, standby.port)),
  ];
  const kept = await b.mutex("kept").acquire({ ttlMs: 30_000 });
  await untilInSync(primary);
  // Processes of the standby outlive its promotion.
  const early = await standby.client();
  trial.closeLater(() => early.end());
  const ledger = new LedgerFunctions(early, trial.namespace);
  const asked = requestOf("l:early", "o", { mode: "exclusive", enqueue: false });
  await expect(ledger.execute([asked])).rejects.toMatchObject({ code: "25006" });
  await expect(ledger.execute([])).rejects.toMatchObject({ code: "25006" });
  replication.cut();
  const unaware = await trial.acquire(a, { ttlMs: 12_000 });
  const told = await b.mutex("told").acquire({ ttlMs: 30_000 });
  await primary.kill();
  await promote(standby);
  // A store that grants nothing is no held lock.
  const refusal = async (): Promise<unknown> =>
    await c
      .mutex(trial.name)
      .acquire({ waitMs: 100 })
      .catch((error: unknown) => error);
  await waitUntil(async () => `${await refusal()}`.includes("grants no free lock"), {
    what: "the new primary answers",
  });
  const refused = { code: "HF_STORE", outcome: "not_applied", retryable: true };
  expect(await refusal()).toMatchObject({ ...refused, retryAfterMs: expect.any(Number) });
  await expect(c.mutex(trial.name).tryAcquire()).rejects.toMatchObject(refused);
  expect(unaware.state).toBe("held");
  expect(await ledger.do(asked)).toMatchObject({ type: "busy", holder: null });
  expect((await c.inspect(trial.name)).holders).toEqual([]);
  // A lease that was replicated goes on. A lease that was not is told as lost.
  await waitUntil(async () => (await kept.renew()) === undefined, { what: "a renewal" });
  expect(await kept.release()).toBe(true);
  await waitUntil(() => told.state === "lost", { what: "the loss is told" });
  const waiting = trial.acquire(c, { waitMs: 60_000 });
  const rest = "select grants_from - 1e6 * extract(epoch from now()) as us from holdfast.marker";
  const [marker] = await standby.ask(rest);
  expect(Number(marker?.us)).toBeGreaterThan(1_000 * unaware.remainingMs());
  await waitUntil(() => unaware.state === "lost", { what: "the deadline" });
  // In place of the rest of the minute.
  await standby.ask("update holdfast.marker set grants_from = 0");
  expect(await (await waiting).release()).toBe(true);
});

test("a failover to a synchronous standby loses no grant: free names do not wait", async () => {
  await using first = await startPostgres();
  await using second = await startStandby(first);
  await first.ask("alter system set synchronous_standby_names = '*'");
  await first.ask("select pg_reload_conf()");
  const isSynchronous = "select 1 from pg_stat_replication where sync_state = 'sync'";
  await waitUntil(async () => (await first.ask(isSynchronous)).length === 1, { what: "sync" });
  const url = `${urlOf(first.port, second.port)}?hasSynchronousStandby=true`;
  const [a, b] = [await trial.open(url), await trial.open(url)];
  const lease = await trial.acquire(a, { ttlMs: 30_000 });
  await first.kill();
  await promote(second);
  await waitUntil(async () => (await b.mutex(trial.name).tryAcquire()) === null, {
    what: "the new primary answers",
  });
  await (await b.mutex("free").acquire({ waitMs: 0 })).release();
  expect((await b.inspect(trial.name)).holders).toMatchObject([{ token: lease.token }]);
  await waitUntil(async () => (await lease.renew()) === undefined, { what: "a renewal" });
  expect(await lease.release()).toBe(true);
});
