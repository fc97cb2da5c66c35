import type { Ioredis } from "../redis/ioredis.js";
import type { NodeRedis } from "../redis/node-redis.js";
import { openClient } from "../redis/open-client.js";

export interface OpenedNodes {
  readonly clients: readonly (Ioredis | NodeRedis)[];
  readonly names: readonly string[];
  close(): Promise<unknown>;
}

const USUAL_PORT = "6379";

/**
 * Opens a client for each server that a URL names: the first as its host, the others as `host`
 * parameters, with the same user, password and database. A server that is down does not matter.
 */
export async function openNodes(url: URL): Promise<OpenedNodes> {
  const urls = [url.host, ...url.searchParams.getAll("host")].map((address) => {
    const one = new URL(url.href.replace(/^redlock(s?):/, "redis$1:"));
    one.search = "";
    // Setting the host alone would keep the port.
    one.port = "";
    one.host = address;
    return one;
  });
  const opened = await Promise.all(urls.map((one) => openClient(one, "later")));
  return {
    clients: opened.map(({ client }) => client),
    names: urls.map(({ hostname, port }) => `${hostname}:${port || USUAL_PORT}`),
    close: () => Promise.all(opened.map((client) => client.close())),
  };
}
