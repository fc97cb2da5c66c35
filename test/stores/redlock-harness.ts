import type { Harness } from "../../src/conformance/index.js";
import { type RedlockStoreOptions, redlockStore } from "../../src/stores/redlock/index.js";
import type { RedisServer } from "../servers/redis.js";

type Clients = RedlockStoreOptions["clients"];

export function redlockUrl(servers: readonly RedisServer[], namespace: string): string {
  const [first, ...others] = servers.map(({ port }) => `127.0.0.1:${port}`);
  const hosts = others.map((address) => `&host=${address}`).join("");
  return `redlock://${first}?namespace=${namespace}&bootstrap=now${hosts}`;
}

/** The harness of the conformance kit for clients on nodes of our own. */
export function redlockHarness(
  servers: () => readonly RedisServer[],
  clients: () => Clients,
  options: Partial<RedlockStoreOptions> = {},
): Harness {
  const keys = (server: RedisServer, namespace: string, kinds: string): Promise<string[]> =>
    server.ask("KEYS", `holdfast:${namespace}:[${kinds}]:*`) as Promise<string[]>;
  return {
    traits: {
      scope: "network",
      modes: ["exclusive"],
      fifo: false,
      tokenSpan: false,
      transferable: true,
      marks: true,
      minTtlMs: 100,
      exclusiveBecause: "its nodes agree on one holder by majority, not on how many share a lock",
    },
    open: async (namespace) =>
      redlockStore({ clients: clients(), namespace, bootstrap: "now", ...options }),
    child: {
      module: new URL("./redlock-child.mjs", import.meta.url),
      argument: (namespace) => redlockUrl(servers(), namespace),
    },
    async wipe(namespace) {
      // At one time, as far as can be: a renewal between would repair what is gone.
      const found = await Promise.all(servers().map((server) => keys(server, namespace, "leobw")));
      await Promise.all(
        servers().map((server, at) => server.ask("DEL", "none", ...(found[at] ?? []))),
      );
    },
    // Ballots stay for a day, on purpose: they keep tokens rising.
    async leftovers(namespace) {
      const found = await Promise.all(servers().map((server) => keys(server, namespace, "leow")));
      return found.flat();
    },
  };
}
