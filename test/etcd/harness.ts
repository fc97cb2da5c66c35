import type { Harness } from "../../src/conformance/index.js";
import type { Store } from "../../src/contract/store.js";
import { SessionStore } from "../../src/families/session/session-store.js";
import { type EtcdClient, Http2Client } from "../../src/stores/etcd/client.js";
import { EtcdSequencer } from "../../src/stores/etcd/etcd-store.js";
import { networkRuntime } from "../../src/time/runtime.js";
import { startProxy } from "../faults/proxy.js";
import type { EtcdServer } from "../servers/etcd.js";
import { faultyEtcdClient } from "./faulty-client.js";

/** A URL for the given ports: the first is the host, the other ones are parameters. */
export function etcdUrl(ports: readonly number[], namespace = ""): URL {
  const [first = 0, ...others] = ports;
  const url = new URL(`etcd://127.0.0.1:${first}`);
  for (const port of others) url.searchParams.append("host", `127.0.0.1:${port}`);
  if (namespace !== "") url.searchParams.set("namespace", namespace);
  return url;
}

/** The client that a store with these endpoints has. */
export function clientOf(ports: readonly number[]): Http2Client {
  const members = ports.map((port) => `127.0.0.1:${port}`);
  return new Http2Client({ members, tls: null, user: null }, networkRuntime());
}

/** A store with this client, which it closes. */
export function storeOf(client: EtcdClient, namespace: string): Store {
  return new SessionStore(
    new EtcdSequencer(client, { namespace, hosts: "127.0.0.1" }, networkRuntime()),
  );
}

/** `members` is called late: the servers start after the cases are registered. */
export function etcdHarness(
  members: () => readonly EtcdServer[],
  { ttlMs = 2_000 }: { readonly ttlMs?: number } = {},
): Harness {
  const ports = (): number[] => members().map(({ port }) => port);
  const keysOf = (namespace: string): { key: string; range_end: string } => ({
    key: base64(`holdfast:in/${namespace}/`),
    range_end: base64(`holdfast:in/${namespace}0`),
  });
  const anyMember = (): EtcdServer => members()[0] as EtcdServer;
  return {
    traits: {
      scope: "network",
      modes: ["exclusive", "shared"],
      fifo: true,
      tokenSpan: false,
      transferable: true,
      marks: true,
      minTtlMs: 2_000,
    },
    ttlMs,
    async open(namespace) {
      return storeOf(clientOf(ports()), namespace);
    },
    child: {
      module: new URL("../stores/child.mjs", import.meta.url),
      argument: (namespace) => etcdUrl(ports(), namespace).href,
    },
    faults: {
      kinds: ["loseReply", "keepBack", "dropPush", "cut", "heal"],
      async open(namespace) {
        const proxies = await Promise.all(ports().map((targetPort) => startProxy({ targetPort })));
        const real = clientOf(proxies.map(({ port }) => port));
        const { client, ...faults } = faultyEtcdClient(real);
        const close = (): void => {
          real.close();
          for (const proxy of proxies) void proxy.close();
        };
        const store = storeOf({ ...client, close }, namespace);
        const cut = (): void => proxies.forEach((proxy) => void proxy.cut());
        const heal = async (): Promise<void> => {
          await Promise.all(proxies.map((proxy) => proxy.heal()));
        };
        return { store, ...faults, cut, heal };
      },
    },
    async wipe(namespace) {
      await anyMember().post("/v3/kv/deleterange", keysOf(namespace));
    },
    async leftovers(namespace) {
      const reply = await anyMember().post("/v3/kv/range", keysOf(namespace));
      const { kvs = [] } = reply as { kvs?: { key: string }[] };
      return kvs.map(({ key }) => Buffer.from(key, "base64").toString());
    },
  };
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
