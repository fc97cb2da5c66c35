import { afterAll, beforeAll } from "vitest";
import { type EtcdServer, startEtcd } from "../servers/etcd.js";
import { runConformance } from "../stores/run-conformance.js";
import { etcdHarness } from "./harness.js";

let server: EtcdServer;
beforeAll(async () => {
  server = await startEtcd();
});
afterAll(() => server.close());

runConformance(etcdHarness(() => [server]));
