/** A Cluster that refuses everything for a while, because one of its slots has no owner. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { StoreError } from "../../src/errors/index.js";
import { type RedisCluster, startRedisCluster } from "../servers/redis-cluster.js";
import { waitUntil } from "../servers/wait-until.js";
import { libraries, openCluster } from "./clients.js";
import { Trial } from "./trial.js";

let cluster: RedisCluster;
let trial: Trial;
beforeAll(async () => {
  cluster = await startRedisCluster();
});
afterAll(() => cluster?.[Symbol.asyncDispose]());
beforeEach(() => {
  trial = new Trial(...cluster.masters.map(({ server }) => server));
});
afterEach(() => trial.close());

/** Changes the last slot of each master, which the lock of the test does not use. */
async function eachMaster(command: "DELSLOTS" | "ADDSLOTS", state: string): Promise<void> {
  for (const [index, { server }] of cluster.masters.entries()) {
    const slot = Math.floor((16_384 * (index + 1)) / cluster.masters.length) - 1;
    await server.ask("CLUSTER", command, slot);
  }
  for (const { server } of cluster.masters) {
    const isSo = async (): Promise<boolean> =>
      String(await server.ask("CLUSTER", "INFO")).includes(`cluster_state:${state}`);
    await waitUntil(isSo, { what: `the Cluster is ${state}` });
  }
}

for (const library of libraries) {
  test(`${library}: a holder and a waiter survive, and a try gets the reason`, async () => {
    const open = async () => trial.by(await openCluster[library](cluster));
    const [holder, other] = [await open(), await open()];
    const lease = await trial.acquire(holder, { ttlMs: 15_000 });
    const waiting = trial.acquire(other, { ttlMs: 15_000 });
    await trial.waiting(holder, 1);
    await eachMaster("DELSLOTS", "fail");
    try {
      const refused = other.mutex(trial.name).acquire({ storeTimeoutMs: 400 });
      await expect(refused).rejects.toThrow(StoreError);
      await expect(refused).rejects.toThrow(/400 ms/);
      lease.assertHeld();
    } finally {
      await eachMaster("ADDSLOTS", "ok");
    }
    await lease.renew();
    expect(await lease.release()).toBe(true);
    expect(await (await waiting).release()).toBe(true);
    await trial.end(other, 2_000);
  });
}
