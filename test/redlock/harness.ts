import type { Command, Harness } from "../../src/conformance/index.js";
import type { Store } from "../../src/contract/store.js";
import { type RedlockStoreOptions, redlockStore } from "../../src/stores/redlock/index.js";
import type { ProxiedRequest } from "../faults/framing.js";
import { holdRequest } from "../faults/late-copy.js";
import { loseReply } from "../faults/message-loss.js";
import { nextPush } from "../faults/next-push.js";
import type { FaultProxy } from "../faults/proxy.js";
import { hasVerb } from "../fixtures/node-call.js";
import type { RedisServer } from "../servers/redis.js";

type Clients = NonNullable<RedlockStoreOptions["clients"]>;

/** `user` is empty or ends with an at sign. */
export function redlockUrl(
  servers: readonly RedisServer[],
  namespace: string,
  user: string,
): string {
  const [first, ...others] = servers.map(({ port }) => `${user}127.0.0.1:${port}`);
  const hosts = others.map((address) => `&host=${address}`).join("");
  const bootstrap = hosts && "&bootstrap=now";
  return `redlock://${first}?namespace=${namespace}${bootstrap}${hosts}`;
}

/** The harness of the conformance kit for Redlock, on that many nodes. A Cluster counts as one. */
export function redlockHarness(
  nodes: number,
  servers: () => readonly RedisServer[],
  clients: () => Clients,
  /** Opens clients for the cases with faults, each through a proxy. */
  disturbed?: () => Promise<{ clients: Clients; proxies: readonly FaultProxy[] }>,
  { user = "", requestOf = verb }: Partial<Way> = {},
): Harness {
  const isSingleServer = nodes === 1;
  const open = (namespace: string, by: Clients): Store => {
    const nodeNames = servers().map(({ port }) => `127.0.0.1:${port}`);
    const [client] = by;
    if (isSingleServer && client) return redlockStore({ client, namespace });
    return redlockStore({ clients: by, nodeNames, namespace, bootstrap: "now" });
  };
  const keys = (server: RedisServer, namespace: string, kinds: string): Promise<string[]> =>
    server.ask("KEYS", `holdfast:${namespace}:[${kinds}]:*`) as Promise<string[]>;
  return {
    traits: {
      scope: "network",
      modes: ["exclusive"],
      fifo: false,
      tokenSpan: true,
      transferable: true,
      marks: true,
      minTtlMs: 100,
      exclusiveBecause: isSingleServer
        ? "a plain key has one value, and so one holder"
        : "its nodes agree on one holder by majority, not on how many share a lock",
    },
    open: async (namespace) => open(namespace, clients()),
    ...(disturbed && {
      faults: {
        kinds: ["loseReply", "keepBack", "dropPush", "cut", "heal"],
        async open(namespace) {
          const { clients: own, proxies } = await disturbed();
          const heard = proxies.map((proxy) =>
            nextPush(proxy, { kind: "subscribe", channel: hasNews }, "pass"),
          );
          return {
            store: open(namespace, own),
            loseReply(to) {
              const match = requestOf[to];
              const lost = proxies.map((proxy) => loseReply(proxy, { match }).struck);
              return { struck: Promise.all(lost) };
            },
            keepBack(command) {
              const match = requestOf[command];
              const held = proxies.map((proxy) => holdRequest(proxy, { match, resets: true }));
              const struck = Promise.all(held.map(({ caught }) => caught));
              return { struck, deliver: () => Promise.all(held.map((one) => one.deliver())) };
            },
            // Every node publishes a release, so the message is lost at every node.
            async dropPush() {
              await Promise.all(heard);
              const lost = proxies.map((proxy) =>
                nextPush(proxy, { kind: "message", channel: hasNews }, "drop"),
              );
              return { struck: Promise.race(lost) };
            },
            cut: () => {
              for (const proxy of proxies) proxy.cut();
            },
            async heal() {
              await Promise.all(proxies.map((proxy) => proxy.heal()));
            },
          };
        },
      },
    }),
    exempt: {
      "an acquire whose reply is lost ends with one holder and the token of the first grant":
        "every attempt has its own ballot, so the token of a repeated attempt is higher",
    },
    child: {
      module: new URL("../stores/child.mjs", import.meta.url),
      argument: (namespace) => redlockUrl(servers(), namespace, user),
    },
    async wipe(namespace) {
      // At the same time, because a renewal in between would repair deleted keys.
      const found = await Promise.all(servers().map((server) => keys(server, namespace, "leobw")));
      // One key in each command: those of different slots cannot share one in a Cluster.
      await Promise.all(
        servers().flatMap((server, at) => (found[at] ?? []).map((key) => server.ask("DEL", key))),
      );
    },
    // Ballots stay for a day by design, so that tokens keep rising.
    async leftovers(namespace) {
      const found = await Promise.all(servers().map((server) => keys(server, namespace, "leow")));
      return found.flat();
    },
  };
}

/** A node publishes releases; it publishes nothing on the channel that names a process. */
function hasNews(channel: string): boolean {
  return !channel.includes("/");
}

/** How clients ask a node. */
export interface Way {
  /** The user and the password, as in a URL. */
  readonly user: string;
  /** The request that decides about a command. */
  readonly requestOf: Requests;
}

type Requests = Readonly<Record<Command, (request: ProxiedRequest) => boolean>>;

/** The call of a node that decides about a command. */
const verb: Requests = {
  acquire: hasVerb("vote"),
  renew: hasVerb("renew"),
  release: hasVerb("release"),
};
