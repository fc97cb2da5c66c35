/** Every client that the stores on Redis support, by its name and major version. */
import { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { Redis as Valkey } from "iovalkey";
import { createClient } from "redis";
import { createClient as createClient5 } from "redis5";
import { ioredis, nodeRedis, type Opened } from "./clients.js";

export type ClientName = "ioredis 6" | "node-redis 6" | "ioredis 5" | "iovalkey" | "node-redis 5";

/** Opens a client of one server. */
export const openUrl: Record<ClientName, (url: string) => Opened | Promise<Opened>> = {
  "ioredis 6": (url) => ioredis(new Redis(url)),
  "node-redis 6": (url) => nodeRedis(createClient({ url })),
  "ioredis 5": (url) => ioredis(new Redis5(url)),
  iovalkey: (url) => ioredis(new Valkey(url)),
  "node-redis 5": (url) => nodeRedis(createClient5({ url })),
};

export const clientNames: readonly ClientName[] = Object.keys(openUrl) as ClientName[];
