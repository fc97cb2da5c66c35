/**
 * The conformance kit. Quick: one client on one server. By default one or two clients on every kind
 * of deployment; the full run has every client on every deployment.
 */

import { Cluster, Redis } from "ioredis";
import { Cluster as Cluster5, Redis as Redis5 } from "ioredis5";
import { Redis as Valkey, Cluster as ValkeyCluster } from "iovalkey";
import { createCluster, createSentinel } from "redis";
import { createCluster as createCluster5, createSentinel as createSentinel5 } from "redis5";
import { afterAll, beforeAll, describe } from "vitest";
import type { Harness } from "../../src/conformance/index.js";
import type { FaultProxy } from "../faults/proxy.js";
import { isFull, isQuick } from "../fixtures/depth.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { type RedisCluster, startRedisCluster } from "../servers/redis-cluster.js";
import { type RedisSentinel, startSentinel } from "../servers/redis-sentinel.js";
import { closeAll } from "../servers/server-process.js";
import { runConformance } from "../stores/run-conformance.js";
import { type Client, ioredis, nodeRedis, type Opened } from "./clients.js";
import { type ClientName, clientNames, openUrl } from "./every-client.js";
import { type ProxiedClient, startProxies } from "./faults.js";
import { redisHarness } from "./harness.js";

/** The port at which a client reaches the server of a port: the same one, or that of a proxy. */
type Route = (port: number) => number;

type Openers = Record<ClientName, (route: Route) => Promise<Opened> | Opened>;

const direct: Route = (port) => port;

/**
 * On servers that HOLDFAST_SERVERS selects, a short run asks one server only: the script is what
 * depends on the version. Clusters and Sentinel are asked there by the full run.
 */
const ofEveryKind = describe.runIf(isFull || !(isQuick || process.env.HOLDFAST_SERVERS));
const host = "127.0.0.1";

function urlOf(scheme: string, ports: readonly number[], path: string, namespace: string): string {
  const [first, ...others] = ports.map((port) => `${host}:${port}`);
  const nodes = others.map((address) => `&node=${address}`).join("");
  return `${scheme}://${first}${path}?namespace=${namespace}${nodes}`;
}

/** The map from the announced address of each server to its route. */
function addressMap(
  route: Route,
  ports: readonly number[],
): Record<string, { host: string; port: number }> {
  if (route === direct) return {};
  return Object.fromEntries(
    ports.map((port) => [`${host}:${port}`, { host, port: route(port) }] as const),
  );
}

interface Tested {
  /** The clients of a run that is not full; quick runs have the first one only. */
  readonly usual: readonly ClientName[];
  masters(): Promise<RedisServer[]>;
  url(namespace: string): string;
  /** Every server that a client connects to, also replicas. */
  servers(): readonly RedisServer[];
  /** The client that the cases with faults run on; the full run runs them on every client. */
  readonly faultsOn?: string;
  /** Cases that a client cannot run, by client and title, each with the reason. */
  readonly exempt?: Partial<Record<ClientName, Harness["exempt"]>>;
}

/** Runs the kit once for each client. */
function conformance(openers: Openers, tested: Tested): void {
  const { usual, servers, faultsOn, exempt = {}, ...deployment } = tested;
  for (const name of isFull ? clientNames : usual.slice(0, isQuick ? 1 : undefined)) {
    describe(name, () => {
      const opened: Opened[] = [];
      const proxies: FaultProxy[] = [];
      const openBy = async (route: Route): Promise<Client> => {
        const fresh = await openers[name](route);
        opened.push(fresh);
        return fresh.client;
      };
      const proxied = async (): Promise<ProxiedClient> => {
        const fresh = await startProxies(servers());
        proxies.push(...fresh);
        const ports = new Map(fresh.map(({ targetPort, port }) => [targetPort, port]));
        return { client: await openBy((port) => ports.get(port) ?? port), proxies: fresh };
      };
      let client: Client;
      beforeAll(async () => {
        client = await openBy(direct);
      });
      afterAll(async () => {
        for (const { close } of opened) close();
        await closeAll(proxies);
      });
      const hasFaults = isFull || name === faultsOn;
      const basics = { ...deployment, client: () => client };
      const harness = redisHarness(hasFaults ? { ...basics, proxied } : basics);
      runConformance({ ...harness, exempt: exempt[name] ?? {} });
    });
  }
}

describe("one server", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server?.close());

  const openers = Object.fromEntries(
    clientNames.map((name) => [
      name,
      (route: Route) => openUrl[name](`redis://${host}:${route(server.port)}`),
    ]),
  ) as Openers;
  conformance(openers, {
    usual: ["ioredis 6", "node-redis 6"],
    masters: async () => [server],
    url: (namespace) => urlOf("redis", [server.port], "", namespace),
    servers: () => [server],
    faultsOn: "ioredis 6",
  });
});

ofEveryKind("a Cluster", () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startRedisCluster();
  });
  afterAll(() => cluster?.[Symbol.asyncDispose]());

  const servers = () => cluster.nodes.map(({ server }) => server);
  const ports = () => servers().map(({ port }) => port);
  const nodes = (route: Route) => ports().map((port) => ({ host, port: route(port) }));
  const byIoredis = (route: Route) => ({ natMap: addressMap(route, ports()) });
  const byNodeRedis = (route: Route) => ({
    rootNodes: ports().map((port) => ({ url: `redis://${host}:${route(port)}` })),
    nodeAddressMap: addressMap(route, ports()),
  });
  const openers: Openers = {
    "ioredis 6": (route) => ioredis(new Cluster(nodes(route), byIoredis(route))),
    "node-redis 6": (route) => nodeRedis(createCluster(byNodeRedis(route))),
    "ioredis 5": (route) => ioredis(new Cluster5(nodes(route), byIoredis(route))),
    iovalkey: (route) => ioredis(new ValkeyCluster(nodes(route), byIoredis(route))),
    "node-redis 5": (route) => nodeRedis(createCluster5(byNodeRedis(route))),
  };
  conformance(openers, {
    usual: ["ioredis 6"],
    masters: async () => cluster.masters.map(({ server }) => server),
    url: (namespace) => urlOf("redis+cluster", ports(), "", namespace),
    servers,
  });
});

ofEveryKind("Sentinel", () => {
  let group: RedisSentinel;
  beforeAll(async () => {
    // A busy machine must not cause a failover.
    group = await startSentinel({ downAfterMs: 30_000 });
  });
  afterAll(() => group?.[Symbol.asyncDispose]());

  const ports = () => group.servers.map(({ port }) => port);
  const byIoredis = (route: Route) => ({
    sentinels: [...group.addresses],
    name: group.masterName,
    natMap: addressMap(route, ports()),
  });
  const byNodeRedis = (route: Route) => ({
    name: group.masterName,
    sentinelRootNodes: [...group.addresses],
    nodeAddressMap: addressMap(route, ports()),
  });
  const openers: Openers = {
    "node-redis 6": (route) => nodeRedis(createSentinel(byNodeRedis(route))),
    "ioredis 6": (route) => ioredis(new Redis(byIoredis(route))),
    "ioredis 5": (route) => ioredis(new Redis5(byIoredis(route))),
    iovalkey: (route) => ioredis(new Valkey(byIoredis(route))),
    "node-redis 5": (route) => nodeRedis(createSentinel5(byNodeRedis(route))),
  };
  conformance(openers, {
    usual: ["node-redis 6"],
    masters: async () => [await group.master()].filter((server) => server !== null),
    url: (namespace) => {
      const sentinels = group.addresses.map(({ port }) => port);
      return urlOf("redis+sentinel", sentinels, `/${group.masterName}`, namespace);
    },
    servers: () => group.servers,
    exempt: {
      "node-redis 5": {
        "a waiter whose wake-up message is lost acquires the lock by asking again":
          "the subscriber of this client ignores nodeAddressMap, so no proxy sees its messages",
      },
    },
  });
});
