/** A Cluster that refuses everything for a while, because one of its slots has no owner. */
import { Cluster } from "ioredis";
import { createCluster } from "redis";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { StoreError } from "../../src/errors.js";
import type { Holdfast } from "../../src/holdfast.js";
import { type RedisCluster, startRedisCluster } from "../servers/redis-cluster.js";
import { waitUntil } from "../servers/wait-until.js";
import { type Client, Trial } from "./redis-trial.js";

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

const libraries: Record<string, () => Promise<Holdfast>> = {
  async ioredis() {
    const nodes = cluster.masters.map(({ server: { port } }) => ({ host: "127.0.0.1", port }));
    const client = new Cluster(nodes, { retryDelayOnClusterDown: 20 });
    client.on("error", () => {});
    return trial.by(client, () => client.disconnect());
  },
  async "node-redis"() {
    const client = createCluster({ rootNodes: cluster.urls.map((url) => ({ url })) });
    client.on("error", () => {});
    await client.connect();
    return trial.by(client as unknown as Client, () => client.destroy());
  },
};

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

for (const [library, open] of Object.entries(libraries)) {
  test(`${library}: a holder and a waiter survive, and a try gets the reason`, async () => {
    const [holder, other] = [await open(), await open()];
    const lease = await trial.acquire(holder, { ttlMs: 5_000 });
    const waiting = trial.acquire(other, { ttlMs: 5_000 });
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
