import { createRequire } from "node:module";
import { Cluster, Redis } from "ioredis";
import { Redis as Valkey, Cluster as ValkeyCluster } from "iovalkey";
import { createClient, createCluster, createSentinel } from "redis";
import { createClient as createClient4, createCluster as createCluster4 } from "redis4";
import { describe, expect, it } from "vitest";
import { driverOf } from "./driver.js";

/** Its types are a package of their own. */
const Redis4 = createRequire(import.meta.url)("ioredis4");
const lazy = { lazyConnect: true };
const sentinel = { name: "main", sentinelRootNodes: [{ host: "localhost", port: 1 }] };

describe("driverOf", () => {
  it.each([
    ["ioredis", new Redis(lazy)],
    ["a Cluster of ioredis", new Cluster([{ port: 1 }], lazy)],
    ["iovalkey", new Valkey(lazy)],
    ["a Cluster of iovalkey", new ValkeyCluster([{ port: 1 }], lazy)],
    ["redis", createClient()],
    ["a Cluster of redis", createCluster({ rootNodes: [] })],
    ["a Sentinel client of redis", createSentinel(sentinel)],
  ])("knows %s", (_title, client) => {
    expect(driverOf(client).database).toBe(0);
  });

  it.each([
    ["ioredis 4", new Redis4(lazy)],
    ["ioredis 4", new Redis4.Cluster([{ port: 1 }], lazy)],
    ["redis (node-redis) 4 or older", createClient4()],
    ["redis (node-redis) 4 or older", createCluster4({ rootNodes: [] })],
  ])("refuses a client of %s, and says so", (version, client) => {
    const message = `Invalid client: a client of ${version}. It must be a client`;
    expect(() => driverOf(client)).toThrow(message);
  });
});
