import { afterAll, beforeAll } from "vitest";
import { startZookeeper, type ZookeeperServer } from "../servers/zookeeper.js";
import { runConformance } from "../stores/run-conformance.js";
import { zookeeperHarness } from "./harness.js";

let server: ZookeeperServer;
beforeAll(async () => {
  server = await startZookeeper({ tickMs: 100, minSessionMs: 100, maxSessionMs: 120_000 });
});
afterAll(() => server.close());

runConformance(zookeeperHarness(() => [server]));
