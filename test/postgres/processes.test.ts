/** Contenders, their connections and the server are killed and stopped at any moment. */

import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { isFull } from "../fixtures/depth.js";
import { type Pgbouncer, startPgbouncer } from "../servers/pgbouncer.js";
import { type PostgresServer, startPostgres } from "../servers/postgres.js";
import { waitUntil } from "../servers/wait-until.js";
import { Contenders } from "../stores/contenders.js";
import { leftovers } from "./harness.js";
import { Trial } from "./trial.js";

const TTL_MS = 1_000;
const ROUNDS = isFull ? 12 : 1;

let server: PostgresServer;
let pooler: Pgbouncer;
let trial: Trial;
beforeAll(async () => {
  server = await startPostgres();
  pooler = await startPgbouncer({ targetPort: server.port, mode: "transaction" });
  // The processes need not make the schema.
  trial = new Trial();
  await trial.turn(await trial.open(server.url));
  await trial.close();
});
afterAll(async () => {
  await pooler?.close();
  await server?.close();
});
beforeEach(() => {
  trial = new Trial();
});
afterEach(() => trial.close());

async function storm(url: string, fault: () => Promise<unknown>): Promise<void> {
  const query = `namespace=${trial.namespace}&offerMs=400`;
  await using contenders = new Contenders(`${url}?${query}`, trial.name);
  let victim = await contenders.start(2, TTL_MS);
  const [second] = [await contenders.start(2, TTL_MS), await contenders.start(2, TTL_MS)];
  for (let round = 0; round < ROUNDS; round += 1) {
    await contenders.untilMoreTurns();
    await fault();
    await contenders.untilMoreTurns();
    await victim.kill();
    victim = await contenders.start(2, TTL_MS);
    await second?.pause();
    await contenders.untilMoreTurns();
    // Its lease and its offers have expired when it continues.
    await sleep(TTL_MS);
    second?.resume();
  }
  await contenders.untilMoreTurns();
  await contenders.end();
  contenders.expectOneAtATime();
  const locks = await trial.open(server.url);
  await trial.turn(locks);
  await waitUntil(async () => (await leftovers(server, trial.namespace)).length === 0, {
    what: "nothing is left",
  });
}

test("connections end", async () => {
  await storm(server.url, () =>
    server.ask(
      "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()",
    ),
  );
});

test("the server crashes", async () => {
  await storm(server.url, async () => {
    await server.kill();
    await server.start();
  });
});

test("a pooler for each transaction, and connections behind it end", async () => {
  expect(pooler.running).toBe(true);
  await storm(pooler.url, () =>
    server.ask(
      "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()",
    ),
  );
});
