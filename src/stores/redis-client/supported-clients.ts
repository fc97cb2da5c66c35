import { invalidValue } from "../../errors/index.js";
import type { Driver } from "./client.js";
import { ioredisDriver, isIoredis, isOldIoredis } from "./ioredis.js";
import { isNodeRedis, type NodeRedis, nodeRedisDriver } from "./node-redis.js";

export const SUPPORTED_CLIENTS = "ioredis 5 or 6, iovalkey, or redis (node-redis) 5 or 6";

/** A client up to version 4 has no `destroy`. */
function isOldNodeRedis(client: object): boolean {
  const { sendCommand, destroy } = client as Partial<NodeRedis>;
  return typeof sendCommand === "function" && destroy === undefined;
}

export function isOldClient(value: unknown): value is object {
  return (
    typeof value === "object" && value !== null && (isOldIoredis(value) || isOldNodeRedis(value))
  );
}

/** Describes a client of an unsupported version, for a message. */
export function describeClient(client: unknown): string | undefined {
  if (client === undefined) return client;
  if (!isOldClient(client)) return `a value of type ${typeof client}`;
  return `a client of ${isOldIoredis(client) ? "ioredis" : "redis (node-redis)"} 4 or older`;
}

/** Whether the value is a client, also one of an unsupported version. */
export function isClient(value: unknown): boolean {
  return isIoredis(value) || isNodeRedis(value) || isOldClient(value);
}

/** Recognizes the supported clients by their methods; it imports no client library. */
export function driverOf(client: unknown): Driver {
  if (isIoredis(client)) return ioredisDriver(client);
  if (isNodeRedis(client)) return nodeRedisDriver(client);
  throw invalidValue(
    "client",
    describeClient(client),
    `must be a client, Sentinel client or Cluster of ${SUPPORTED_CLIENTS}`,
  );
}
