/** Opens clients of both libraries for tests. */
import { Cluster, Redis } from "ioredis";
import { createCluster, createSentinel } from "redis";
import type { RedisStoreOptions } from "../../src/stores/redis/index.js";
import type { RedisCluster } from "../servers/redis-cluster.js";
import type { RedisSentinel } from "../servers/redis-sentinel.js";

export type Client = RedisStoreOptions["client"];

/** A client that the test has to close. */
export interface Opened {
  readonly client: Client;
  close(): unknown;
}

/** The user of a client. Default: the server's default user. */
interface User {
  readonly username?: string;
  readonly password?: string;
}

const host = "127.0.0.1";
/** Soon: tests wait for clients that connect again or are told to try again. */
export const RECONNECT_MS = 20;

/** Takes a client of ioredis or iovalkey. */
export function ioredis(client: Client & { disconnect(): void }): Opened {
  client.on("error", () => {});
  return { client, close: () => client.disconnect() };
}

/** Connects a client of node-redis. */
export async function nodeRedis(client: unknown): Promise<Opened> {
  const opening = client as Client & { connect(): Promise<unknown>; destroy(): unknown };
  opening.on("error", () => {});
  await opening.connect();
  return { client: opening, close: () => opening.destroy() };
}

export type Library = "ioredis" | "node-redis";
export const libraries: readonly Library[] = ["ioredis", "node-redis"];

/** Opens a client of a Cluster. */
export const openCluster: Record<Library, (cluster: RedisCluster, user?: User) => Promise<Opened>> =
  {
    async ioredis(cluster, user = {}) {
      const nodes = cluster.masters.map(({ server: { port } }) => ({ host, port }));
      const again = { retryDelayOnClusterDown: RECONNECT_MS, retryDelayOnTryAgain: RECONNECT_MS };
      return ioredis(new Cluster(nodes, { ...again, redisOptions: user }));
    },
    "node-redis"(cluster, user = {}) {
      const rootNodes = cluster.urls.map((url) => ({ url }));
      return nodeRedis(createCluster({ rootNodes, defaults: user }));
    },
  };

/** Opens a client of the master that the sentinels name. */
export const openSentinel: Record<Library, (group: RedisSentinel, user?: User) => Promise<Opened>> =
  {
    async ioredis({ addresses, masterName }, user = {}) {
      return ioredis(new Redis({ sentinels: [...addresses], name: masterName, ...user }));
    },
    "node-redis"({ addresses, masterName }, user = {}) {
      const sentinelRootNodes = [...addresses];
      const options = { name: masterName, sentinelRootNodes, nodeClientOptions: user };
      return nodeRedis(createSentinel(options));
    },
  };
