import { afterAll, beforeAll } from "vitest";
import { type EtcdCluster, startEtcdCluster } from "../servers/etcd.js";
import { etcdHarness } from "./etcd-harness.js";
import { runConformance } from "./run-conformance.js";

// Members that get no processor for a second must not elect another leader: that takes their time,
// and the silence of an election is for the tests of faults. The shortest lease is 3 s by that.
const calm = ["--heartbeat-interval", "200", "--election-timeout", "2000", "--pre-vote"];

let cluster: EtcdCluster;
beforeAll(async () => {
  cluster = await startEtcdCluster(3, { args: calm });
});
afterAll(() => cluster[Symbol.asyncDispose]());

// Three members and their clients share the machine with the tests of other stores.
runConformance(
  etcdHarness(() => cluster.members, 3_000),
  { concurrency: 4 },
);
