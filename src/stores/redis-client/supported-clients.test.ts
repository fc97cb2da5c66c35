import { createRequire } from "node:module";
import { Cluster, Redis } from "ioredis";
import { Redis as Valkey, Cluster as ValkeyCluster } from "iovalkey";
import { createClient, createCluster, createSentinel } from "redis";
import { createClient as createClient4, createCluster as createCluster4 } from "redis4";
import { describe, expect, it, vi } from "vitest";
import { driverOf } from "./supported-clients.js";

/** Its types are a package of their own. */
const Redis4 = createRequire(import.meta.url)("ioredis4");
const lazy = { lazyConnect: true };
const sentinel = { name: "main", sentinelRootNodes: [{ host: "localhost", port: 1 }] };

/** As much of a client of ioredis 2 as tells it from others. */
const ioredis2 = {
  status: "wait",
  options: { dropBufferSupport: false },
  call: async () => null,
  duplicate: () => null,
  sendCommand: async () => null,
};

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
    ["ioredis 4 or older", new Redis4(lazy)],
    ["ioredis 4 or older", new Redis4.Cluster([{ port: 1 }], lazy)],
    ["ioredis 4 or older", ioredis2],
    ["redis (node-redis) 4 or older", createClient4()],
    ["redis (node-redis) 4 or older", createCluster4({ rootNodes: [] })],
  ])("refuses a client of %s, and says so", (version, client) => {
    const message = `Invalid client: a client of ${version}. It must be a client`;
    expect(() => driverOf(client)).toThrow(message);
  });

  it.each([
    ["get", ["a"], ["get", "p:a"]],
    ["set", ["a", "b", "NX"], ["set", "p:a", "b", "NX"]],
    ["mget", ["a", "b"], ["mget", "p:a", "p:b"]],
    ["evalsha", ["sha", "2", "a", "b", "c"], ["evalsha", "sha", "2", "p:a", "p:b", "c"]],
  ])(
    "puts the prefix of a node-redis client before all keys of %s",
    async (command, args, sent) => {
      const client = createClient({ keyPrefix: "p:" });
      const sendCommand = vi.fn(async () => null);
      const driver = driverOf(Object.assign(client, { sendCommand }));
      await driver.send("a", command, args);
      expect(sendCommand).toHaveBeenCalledWith(sent, expect.anything());
    },
  );
});
