import type { Ioredis } from "./ioredis.js";
import type { NodeRedis } from "./node-redis.js";

export const SUPPORTED_CLIENTS = "ioredis 5 or 6 or redis (node-redis) 5 or 6";

/** ioredis 4 has the same methods but one, which came with 5, and an option which went with it. */
export function isIoredis4(client: object): boolean {
  const { options } = client as Partial<Ioredis>;
  const hasOldOption = typeof options === "object" && "showFriendlyErrorStack" in options;
  return hasOldOption && !("createScanStream" in client);
}

/** Up to version 4, a client has no `destroy`; up to 3, no `connect` either. */
function isOldNodeRedis(client: object): boolean {
  const { sendCommand, destroy } = client as Partial<NodeRedis>;
  return typeof sendCommand === "function" && destroy === undefined;
}

export function isOldClient(value: unknown): value is object {
  return (
    typeof value === "object" && value !== null && (isIoredis4(value) || isOldNodeRedis(value))
  );
}

/** A client that cannot be used, for a message. */
export function describeClient(client: unknown): string | undefined {
  if (client === undefined) return client;
  if (!isOldClient(client)) return `a value of type ${typeof client}`;
  return `a client of ${isIoredis4(client) ? "ioredis 4" : "redis (node-redis) 4 or older"}`;
}
