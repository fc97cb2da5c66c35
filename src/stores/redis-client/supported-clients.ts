import type { Ioredis } from "./ioredis.js";
import type { NodeRedis } from "./node-redis.js";

export const SUPPORTED_CLIENTS = "ioredis 5 or 6, iovalkey, or redis (node-redis) 5 or 6";

/** ioredis 4 lacks a method that came with 5, and has an option that 5 dropped. */
export function isIoredis4(client: object): boolean {
  const { options } = client as Partial<Ioredis>;
  const hasOldOption = typeof options === "object" && "showFriendlyErrorStack" in options;
  return hasOldOption && !("createScanStream" in client);
}

/** A client up to version 4 has no `destroy`. */
function isOldNodeRedis(client: object): boolean {
  const { sendCommand, destroy } = client as Partial<NodeRedis>;
  return typeof sendCommand === "function" && destroy === undefined;
}

export function isOldClient(value: unknown): value is object {
  return (
    typeof value === "object" && value !== null && (isIoredis4(value) || isOldNodeRedis(value))
  );
}

/** Describes a client of an unsupported version, for a message. */
export function describeClient(client: unknown): string | undefined {
  if (client === undefined) return client;
  if (!isOldClient(client)) return `a value of type ${typeof client}`;
  return `a client of ${isIoredis4(client) ? "ioredis 4" : "redis (node-redis) 4 or older"}`;
}
