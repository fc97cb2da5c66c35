/**
 * The conformance kit on a Redis Cluster, which decides alone. By default one client;
 * HOLDFAST_FULL=1 runs both.
 */
import { Cluster } from "ioredis";
import { createCluster } from "redis";
import { afterAll, beforeAll, describe } from "vitest";
import type { RedlockStoreOptions } from "../../src/stores/redlock/index.js";
import { type RedisCluster, startRedisCluster } from "../servers/redis-cluster.js";
import { redlockHarness } from "./redlock-harness.js";
import { runConformance } from "./run-conformance.js";

/** A client that the test has to close. */
interface Opened {
  readonly client: NonNullable<RedlockStoreOptions["client"]>;
  close(): unknown;
}

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startRedisCluster();
});
afterAll(() => cluster?.[Symbol.asyncDispose]());

const openers: Record<string, () => Promise<Opened>> = {
  "ioredis 6": async () => {
    const nodes = cluster.masters.map(({ server }) => ({ host: "127.0.0.1", port: server.port }));
    const client = new Cluster(nodes);
    client.on("error", () => {});
    return { client, close: () => client.disconnect() };
  },
  "node-redis 6": async () => {
    const client = createCluster({ rootNodes: cluster.urls.map((url) => ({ url })) });
    client.on("error", () => {});
    await client.connect();
    return { client, close: () => client.destroy() };
  },
};

const names = Object.keys(openers);
for (const name of process.env.HOLDFAST_FULL ? names : names.slice(0, 1)) {
  describe(name, () => {
    let opened: Opened;
    beforeAll(async () => {
      opened = (await openers[name]?.()) as Opened;
    });
    afterAll(() => opened?.close());
    const harness = redlockHarness(
      1,
      () => cluster.masters.map(({ server }) => server),
      () => [opened.client],
    );
    runConformance({
      ...harness,
      child: {
        module: new URL("./redlock-child.mjs", import.meta.url),
        argument: (namespace) => {
          const [first, ...others] = cluster.masters.map(
            ({ server }) => `127.0.0.1:${server.port}`,
          );
          const hosts = others.map((address) => `&node=${address}`).join("");
          return `redlock+cluster://${first}?namespace=${namespace}${hosts}`;
        },
      },
    });
  });
}
