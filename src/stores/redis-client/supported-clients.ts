import type { Ioredis } from "./ioredis.js";
import type { NodeRedis } from "./node-redis.js";

export const SUPPORTED_CLIENTS = "ioredis 5 or 6, iovalkey, or redis (node-redis) 5 or 6";

/** Options that ioredis 5 dropped: of a plain client, and of a Cluster. */
const OLD_OPTIONS = ["dropBufferSupport", "showFriendlyErrorStack"];

/** ioredis up to version 4 lacks a method that came with 5, and has options that 5 dropped. */
export function isOldIoredis(client: object): boolean {
  const { options } = client as Partial<Ioredis>;
  if (typeof options !== "object" || "createScanStream" in client) return false;
  return OLD_OPTIONS.some((option) => option in options);
}

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
