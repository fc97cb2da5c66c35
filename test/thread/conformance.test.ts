/**
 * The conformance kit on stores that run in a thread of their own: on Redis, and with the full run
 * on etcd and files, too.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe } from "vitest";
import type { Harness } from "../../src/conformance/index.js";
import { fileStore } from "../../src/stores/file/index.js";
import { etcdHarness, etcdUrl } from "../etcd/harness.js";
import { type FaultProxy, startProxy } from "../faults/proxy.js";
import { isFull } from "../fixtures/depth.js";
import { redisFaults } from "../redis/faults.js";
import { redisHarness } from "../redis/harness.js";
import { type EtcdServer, startEtcd } from "../servers/etcd.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { closeAll } from "../servers/server-process.js";
import { runConformance } from "../stores/run-conformance.js";
import { openThreadStore } from "./built-thread.js";

const ofFullRun = describe.runIf(isFull);

const exempt: NonNullable<Harness["exempt"]> = {
  "after the event loop was blocked past the ttl, the next statement sees the lease as lost":
    "the thread renews the lease meanwhile",
};

describe("redis", () => {
  let server: RedisServer;
  const proxies: FaultProxy[] = [];
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(async () => {
    await closeAll(proxies);
    await server?.close();
  });
  const url = (port: number, namespace: string) =>
    `redis://127.0.0.1:${port}?namespace=${namespace}`;
  const harness = redisHarness({
    masters: async () => [server],
    url: (namespace) => url(server.port, namespace),
    client: () => {
      throw new Error("a store in a thread has a client of its own");
    },
  });
  runConformance({
    ...harness,
    exempt,
    open: (namespace) => openThreadStore(url(server.port, namespace)),
    child: {
      module: new URL("./child.mjs", import.meta.url),
      argument: (namespace) => url(server.port, namespace),
    },
    faults: {
      kinds: ["loseReply", "keepBack", "dropPush", "cut", "heal"],
      async open(namespace) {
        const proxy = await startProxy({ targetPort: server.port, framing: "resp" });
        proxies.push(proxy);
        const faults = redisFaults([proxy]);
        return { store: await openThreadStore(url(proxy.port, namespace)), ...faults };
      },
    },
  });
});

ofFullRun("etcd", () => {
  let server: EtcdServer;
  const proxies: FaultProxy[] = [];
  beforeAll(async () => {
    server = await startEtcd();
  });
  afterAll(async () => {
    await closeAll(proxies);
    await server?.close();
  });
  const url = (port: number, namespace: string) => etcdUrl([port], namespace).href;
  runConformance({
    ...etcdHarness(() => [server]),
    exempt,
    open: (namespace) => openThreadStore(url(server.port, namespace)),
    child: {
      module: new URL("./child.mjs", import.meta.url),
      argument: (namespace) => url(server.port, namespace),
    },
    // The others are faults of a client, which is in the thread.
    faults: {
      kinds: ["cut", "heal"],
      async open(namespace) {
        const proxy = await startProxy({ targetPort: server.port });
        proxies.push(proxy);
        const store = await openThreadStore(url(proxy.port, namespace));
        return { store, cut: () => proxy.cut(), heal: () => proxy.heal() };
      },
    },
  });
});

ofFullRun("file", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "holdfast-thread-"));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const url = (namespace: string): string => {
    const path = pathToFileURL(join(folder, `${namespace.slice(0, 13)}.db`));
    return `${path}?namespace=${namespace}`;
  };
  runConformance({
    traits: fileStore().traits,
    exempt,
    open: (namespace) => openThreadStore(url(namespace)),
    child: { module: new URL("./child.mjs", import.meta.url), argument: url },
  });
});
