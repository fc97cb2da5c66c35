import type { Harness } from "../../src/conformance/index.js";
import type { Store } from "../../src/contract/store.js";
import { type RedisStoreOptions, redisStore } from "../../src/stores/redis/index.js";
import type { RedisServer } from "../servers/redis.js";
import type { Client } from "./clients.js";
import { type ProxiedClient, redisFaults } from "./faults.js";

/** A deployment of Redis, and how to reach it. */
export interface Deployment {
  /** All servers that accept writes. */
  masters(): Promise<readonly RedisServer[]>;
  /** The URL for child processes. */
  url(namespace: string): string;
  client(): Client;
  /** A client of its own for the cases with faults. Without it they are skipped. */
  proxied?(): Promise<ProxiedClient>;
}

/** The harness of the conformance kit for one client on one deployment. */
export function redisHarness(
  deployment: Deployment,
  options: Partial<RedisStoreOptions> = {},
): Harness {
  const keys = async (namespace: string): Promise<[RedisServer, string[]][]> => {
    const masters = await deployment.masters();
    return await Promise.all(
      masters.map(async (master): Promise<[RedisServer, string[]]> => {
        const all = (await master.ask("KEYS", `{hf:${namespace}[:}]*`)) as string[];
        return [master, all];
      }),
    );
  };
  const open = (client: Client, namespace: string): Store =>
    redisStore({ client, namespace, ...options });
  const { proxied } = deployment;
  return {
    traits: TRAITS,
    open: async (namespace) => open(deployment.client(), namespace),
    ...(proxied && {
      faults: {
        kinds: ["loseReply", "keepBack", "dropPush", "cut", "heal"],
        async open(namespace) {
          const { client, proxies } = await proxied();
          // The proxies are watched before the store subscribes.
          const faults = redisFaults(proxies);
          return { store: open(client, namespace), ...faults };
        },
      },
    }),
    child: {
      module: new URL("../stores/child.mjs", import.meta.url),
      argument: (namespace) => deployment.url(namespace),
    },
    async wipe(namespace) {
      for (const [master, found] of await keys(namespace)) {
        // One at a time: in a Cluster, one DEL takes keys of one slot only.
        for (const key of found) await master.ask("DEL", key);
      }
    },
    async leftovers(namespace) {
      const found = await keys(namespace);
      return found.flatMap(([, names]) => names.filter((name) => !name.endsWith("}")));
    },
  };
}

const TRAITS: Harness["traits"] = {
  scope: "network",
  modes: ["exclusive", "shared"],
  fifo: true,
  tokenSpan: true,
  transferable: true,
  marks: true,
  ordersReleases: true,
  minTtlMs: 50,
};
