/**
 * The conformance kit on a Redis Cluster, which decides alone. By default one client;
 * the full run runs both.
 */

import { afterAll, beforeAll, describe } from "vitest";
import { isFull } from "../fixtures/depth.js";
import { libraries, type Opened, openCluster } from "../redis/clients.js";
import { type RedisCluster, startRedisCluster } from "../servers/redis-cluster.js";
import { runConformance } from "../stores/run-conformance.js";
import { redlockHarness } from "./harness.js";

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startRedisCluster();
});
afterAll(() => cluster?.[Symbol.asyncDispose]());

for (const library of isFull ? libraries : libraries.slice(0, 1)) {
  describe(library, () => {
    let opened: Opened;
    beforeAll(async () => {
      opened = await openCluster[library](cluster);
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
        module: new URL("../stores/child.mjs", import.meta.url),
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
