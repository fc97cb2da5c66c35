import { afterAll, beforeAll } from "vitest";
import { type EtcdCluster, startEtcdCluster } from "../servers/etcd.js";
import { etcdHarness } from "./etcd-harness.js";
import { runConformance } from "./run-conformance.js";

let cluster: EtcdCluster;
beforeAll(async () => {
  cluster = await startEtcdCluster(3);
});
afterAll(() => cluster[Symbol.asyncDispose]());

// Three members write everything to the same disk, beside the tests of other stores.
runConformance(etcdHarness(() => cluster.members, 3_000));
