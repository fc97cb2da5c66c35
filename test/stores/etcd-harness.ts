import { Etcd3 } from "etcd3";
import type { Harness } from "../../src/conformance/index.js";
import type { EtcdClient } from "../../src/stores/etcd/etcd-client.js";
import { makeEtcdStore } from "../../src/stores/etcd/etcd-store.js";
import { openEtcdClient } from "../../src/stores/etcd/etcd-url.js";
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

type OpenedClient = EtcdClient & { close(): void };

/** The client of a URL, as `connect` makes it. */
const ofUrl = (ports: readonly number[]): Promise<OpenedClient> => openEtcdClient(etcdUrl(ports));

/** Passes all calls through. */
const noop = { execute: async <T>(call: () => T): Promise<Awaited<T>> => await call() };

/** A client that a program passes in, with the policies that the page of the store advises. */
export async function ofPackage(ports: readonly number[]): Promise<OpenedClient> {
  const hosts = ports.map((port) => `http://127.0.0.1:${port}`);
  const faultHandling = { host: () => noop, global: noop };
  return new Etcd3({ hosts, faultHandling } as never) as unknown as OpenedClient;
}

interface EtcdHarnessOptions {
  readonly ttlMs?: number;
  readonly openClient?: (ports: readonly number[]) => Promise<OpenedClient>;
}

/** `members` is called late: the servers start after the cases are registered. */
export function etcdHarness(
  members: () => readonly EtcdServer[],
  { ttlMs = 2_000, openClient = ofUrl }: EtcdHarnessOptions = {},
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
      const client = await openClient(ports());
      return makeEtcdStore(client, namespace, () => client.close());
    },
    child: {
      module: new URL("etcd-child.mjs", import.meta.url),
      argument: (namespace) => etcdUrl(ports(), namespace).href,
    },
    faults: {
      kinds: ["loseReply", "keepBack", "dropPush", "cut", "heal"],
      async open(namespace) {
        const proxies = await Promise.all(ports().map((targetPort) => startProxy({ targetPort })));
        const real = await openClient(proxies.map(({ port }) => port));
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
