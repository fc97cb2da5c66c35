import { afterAll, beforeAll, describe } from "vitest";
import { type EtcdCluster, type EtcdServer, startEtcd, startEtcdCluster } from "../servers/etcd.js";
import { etcdHarness } from "./etcd-harness.js";
import { runConformance } from "./run-conformance.js";

describe("one node", () => {
  let server: EtcdServer;
  beforeAll(async () => {
    server = await startEtcd();
  });
  afterAll(() => server.close());
  runConformance(etcdHarness(() => [server]));
});

describe("a cluster of three", () => {
  let cluster: EtcdCluster;
  beforeAll(async () => {
    cluster = await startEtcdCluster(3);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());
  runConformance(etcdHarness(() => cluster.members));
});
