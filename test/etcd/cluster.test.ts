import { afterAll, beforeAll } from "vitest";
import { type EtcdCluster, startEtcdCluster } from "../servers/etcd.js";
import { runConformance } from "../stores/run-conformance.js";
import { etcdHarness } from "./harness.js";

// Members that get no processor for a second must not elect another leader: elections belong to the
// tests of faults. With these options the shortest lease is 3 s.
const calm = ["--heartbeat-interval", "200", "--election-timeout", "2000", "--pre-vote"];

let cluster: EtcdCluster;
beforeAll(async () => {
  cluster = await startEtcdCluster(3, { args: calm });
});
afterAll(() => cluster[Symbol.asyncDispose]());

// Three members and their clients share the machine with the tests of other stores.
runConformance(
  etcdHarness(() => cluster.members, { ttlMs: 3_000 }),
  { concurrency: 8 },
);
