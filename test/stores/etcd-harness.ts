import type { Harness } from "../../src/conformance/index.js";
import { makeEtcdStore } from "../../src/stores/etcd/etcd-store.js";
import { openEtcdClient } from "../../src/stores/etcd/etcd-url.js";
import { openEtcdStore } from "../../src/stores/etcd/index.js";
import { startProxy } from "../faults/proxy.js";
import type { EtcdServer } from "../servers/etcd.js";
import { faultyEtcdClient } from "./faulty-etcd-client.js";

/** A URL for the given ports: the first is the host, the other ones are parameters. */
export function etcdUrl(ports: readonly number[], namespace = ""): URL {
  const [first = 0, ...others] = ports;
  const url = new URL(`etcd://127.0.0.1:${first}`);
  for (const port of others) url.searchParams.append("host", `127.0.0.1:${port}`);
  if (namespace !== "") url.searchParams.set("namespace", namespace);
  return url;
}

/** `members` is called late: the servers start after the cases are registered. */
export function etcdHarness(members: () => readonly EtcdServer[], ttlMs = 2_000): Harness {
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
    open: (namespace) => openEtcdStore(etcdUrl(ports(), namespace)),
    child: {
      module: new URL("etcd-child.mjs", import.meta.url),
      argument: (namespace) => etcdUrl(ports(), namespace).href,
    },
    faults: {
      kinds: ["loseReply", "keepBack", "dropPush", "cut", "heal"],
      async open(namespace) {
        const proxies = await Promise.all(ports().map((targetPort) => startProxy({ targetPort })));
        const real = await openEtcdClient(etcdUrl(proxies.map(({ port }) => port)));
        const { client, ...faults } = faultyEtcdClient(real);
        const store = makeEtcdStore(client, namespace, () => {
          real.close();
          for (const proxy of proxies) void proxy.close();
        });
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
