/**
 * The conformance kit on every kind of deployment. By default one client each; HOLDFAST_FULL=1 runs
 * every client on every deployment.
 */
import { Cluster, Redis } from "ioredis";
import { Cluster as Cluster5, Redis as Redis5 } from "ioredis5";
import { createClient, createCluster, createSentinel } from "redis";
import {
  createClient as createClient5,
  createCluster as createCluster5,
  createSentinel as createSentinel5,
} from "redis5";
import { afterAll, beforeAll, describe } from "vitest";
import type { RedisStoreOptions } from "../../src/stores/redis/index.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { type RedisCluster, startRedisCluster } from "../servers/redis-cluster.js";
import { type RedisSentinel, startSentinel } from "../servers/redis-sentinel.js";
import { redisHarness } from "./redis-harness.js";
import { runConformance } from "./run-conformance.js";

type Client = RedisStoreOptions["client"];

/** What a test opens and has to end itself. */
interface Opened {
  readonly client: Client;
  close(): unknown;
}

type Openers = Record<string, () => Promise<Opened> | Opened>;

const isFull = Boolean(process.env.HOLDFAST_FULL);
const host = "127.0.0.1";

function ioredis(client: Client & { disconnect(): void }): Opened {
  return { client, close: () => client.disconnect() };
}

async function nodeRedis(client: unknown): Promise<Opened> {
  const opening = client as Client & { connect(): Promise<unknown>; destroy(): unknown };
  opening.on("error", () => {});
  await opening.connect();
  return { client: opening, close: () => opening.destroy() };
}

function urlOf(scheme: string, ports: readonly number[], path: string, namespace: string): string {
  const [first, ...others] = ports.map((port) => `${host}:${port}`);
  const nodes = others.map((address) => `&node=${address}`).join("");
  return `${scheme}://${first}${path}?namespace=${namespace}${nodes}`;
}

/** Runs the kit once for each client. */
function conformance(
  clients: Openers,
  deployment: { masters(): Promise<RedisServer[]>; url(namespace: string): string },
): void {
  for (const [name, open] of Object.entries(clients)) {
    describe(name, () => {
      let opened: Opened;
      beforeAll(async () => {
        opened = await open();
      });
      afterAll(() => void opened?.close());
      runConformance(redisHarness({ ...deployment, client: () => opened.client }));
    });
  }
}

describe("one server", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server?.close());

  const clients: Openers = {
    "ioredis 6": () => ioredis(new Redis(server.port)),
    "node-redis 6": () => nodeRedis(createClient({ url: server.url })),
  };
  const others: Openers = {
    "ioredis 5": () => ioredis(new Redis5(server.port)),
    "node-redis 5": () => nodeRedis(createClient5({ url: server.url })),
  };
  conformance(isFull ? { ...clients, ...others } : clients, {
    masters: async () => [server],
    url: (namespace) => urlOf("redis", [server.port], "", namespace),
  });
});

describe("a Cluster", () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startRedisCluster();
  });
  afterAll(() => cluster?.[Symbol.asyncDispose]());

  const ports = () => cluster.masters.map(({ server }) => server.port);
  const nodes = () => ports().map((port) => ({ host, port }));
  const rootNodes = () => cluster.urls.map((url) => ({ url }));
  const clients: Openers = { "ioredis 6": () => ioredis(new Cluster(nodes())) };
  const others: Openers = {
    "node-redis 6": () => nodeRedis(createCluster({ rootNodes: rootNodes() })),
    "ioredis 5": () => ioredis(new Cluster5(nodes())),
    "node-redis 5": () => nodeRedis(createCluster5({ rootNodes: rootNodes() })),
  };
  conformance(isFull ? { ...clients, ...others } : clients, {
    masters: async () => cluster.masters.map(({ server }) => server),
    url: (namespace) => urlOf("redis+cluster", ports(), "", namespace),
  });
});

describe("Sentinel", () => {
  let group: RedisSentinel;
  beforeAll(async () => {
    // A failover because this machine is busy would be no fault of the store.
    group = await startSentinel({ downAfterMs: 30_000 });
  });
  afterAll(() => group?.[Symbol.asyncDispose]());

  const byIoredis = () => ({ sentinels: [...group.addresses], name: group.masterName });
  const byNodeRedis = () => ({ name: group.masterName, sentinelRootNodes: [...group.addresses] });
  const clients: Openers = { "node-redis 6": () => nodeRedis(createSentinel(byNodeRedis())) };
  const others: Openers = {
    "ioredis 6": () => ioredis(new Redis(byIoredis())),
    "ioredis 5": () => ioredis(new Redis5(byIoredis())),
    "node-redis 5": () => nodeRedis(createSentinel5(byNodeRedis())),
  };
  conformance(isFull ? { ...clients, ...others } : clients, {
    masters: async () => [await group.master()].filter((server) => server !== null),
    url: (namespace) => {
      const ports = group.addresses.map(({ port }) => port);
      return urlOf("redis+sentinel", ports, `/${group.masterName}`, namespace);
    },
  });
});
