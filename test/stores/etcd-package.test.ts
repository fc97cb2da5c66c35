/** With a client of the package `etcd3`, beside processes whose clients are of a URL. */
import { afterAll, beforeAll } from "vitest";
import { type EtcdServer, startEtcd } from "../servers/etcd.js";
import { etcdHarness, ofPackage } from "./etcd-harness.js";
import { runConformance } from "./run-conformance.js";

let server: EtcdServer;
beforeAll(async () => {
  server = await startEtcd();
});
afterAll(() => server.close());

runConformance(etcdHarness(() => [server], { openClient: ofPackage }));
