/** The ACL rules and the TLS set-up of the documentation, word for word. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Holdfast } from "../../src/api/holdfast.js";
import { startProcess } from "../faults/process.js";
import { Authority } from "../servers/certificates.js";
import { onFreePorts } from "../servers/free-port.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { type RedisCluster, startRedisCluster } from "../servers/redis-cluster.js";
import { type RedisSentinel, startSentinel } from "../servers/redis-sentinel.js";
import {
  ioredis,
  type Library,
  libraries,
  nodeRedis,
  type Opened,
  openCluster,
  openSentinel,
} from "./clients.js";
import { Trial } from "./trial.js";

const host = "127.0.0.1";
const access = { username: "locks", password: "password" };
const page = readFileSync(new URL("../../docs/stores/redis.md", import.meta.url), "utf8");
const [line = ""] = /^ACL SETUSER .*$/m.exec(page) ?? [];
const [, ofCluster = ""] = /A Cluster also needs `([^`]+)`/.exec(page) ?? [];

/** All kinds of calls of a client. */
async function useAll(trial: Trial, [a, b]: readonly [Holdfast, Holdfast]): Promise<void> {
  const lease = await trial.acquire(a);
  const waiting = trial.acquire(b);
  await trial.waiting(a, 1);
  await lease.renew();
  await lease.release();
  const next = await waiting;
  const lost = new Promise((resolve) => next.signal.addEventListener("abort", resolve));
  expect(await a.revoke(trial.name, { token: next.token, reason: "test" })).toBe(true);
  await lost;
  const read = await a.readWrite("rw").read.acquire({ ttlMs: 2_000 });
  await b.semaphore("s", 3).run(async () => {}, { weight: 2, ttlMs: 2_000 });
  expect((await b.once("o", async () => 1, { keepMs: 500, ttlMs: 2_000 })).ran).toBe(true);
  const names = [];
  for await (const { name } of a.list()) names.push(name);
  expect(names).toContain("rw");
  await read.renew();
  expect(await read.release()).toBe(true);
}

async function denied(servers: readonly RedisServer[]): Promise<unknown[]> {
  const logs = await Promise.all(servers.map((server) => server.ask("ACL", "LOG")));
  return logs.flat();
}

describe.concurrent("rights in a Cluster", () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startRedisCluster({ replicasPerMaster: 1 });
    for (const { server } of cluster.nodes) {
      await server.ask(...line.split(" "), ...ofCluster.split(" "));
    }
  });
  afterAll(() => cluster?.[Symbol.asyncDispose]());

  const open = async (library: Library, trial: Trial): Promise<Holdfast> =>
    trial.by(await openCluster[library](cluster, access));

  test.for(libraries)("%s", async (library) => {
    const servers = cluster.masters.map(({ server }) => server);
    const trial = new Trial(...servers);
    try {
      const locks = [await open(library, trial), await open(library, trial)] as const;
      // While a slot is migrating, a client has to send ASKING.
      const lease = await trial.acquire(locks[0]);
      const [key = ""] = (
        await Promise.all(
          servers.map((server) => server.ask("KEYS", `{hf:${trial.namespace}:*}:l:m`)),
        )
      ).flat() as string[];
      const slot = await cluster.slotOf(key);
      const owner = await cluster.ownerOf(slot);
      const to = cluster.masters.find((node) => node !== owner) ?? owner;
      const move = await cluster.beginMove(slot, to);
      await move.moveKeys();
      await lease.renew();
      await move.finish();
      expect(await lease.release()).toBe(true);
      await useAll(trial, locks);
      await trial.end(locks[0], 5_000);
      expect(await denied(cluster.nodes.map(({ server }) => server))).toEqual([]);
    } finally {
      await trial.close();
    }
  });
});

describe.concurrent("rights with Sentinel", () => {
  let group: RedisSentinel;
  beforeAll(async () => {
    group = await startSentinel({ replicas: 1, downAfterMs: 30_000 });
    for (const server of group.servers) await server.ask(...line.split(" "));
  });
  afterAll(() => group?.[Symbol.asyncDispose]());

  const open = async (library: Library, trial: Trial): Promise<Holdfast> =>
    trial.by(await openSentinel[library](group, access), { replicas: 1 });

  test.for(libraries)("%s", async (library) => {
    const trial = new Trial(...group.servers);
    try {
      await useAll(trial, [await open(library, trial), await open(library, trial)]);
      await trial.end(await open(library, trial), 5_000);
      expect(await denied(group.servers)).toEqual([]);
    } finally {
      await trial.close();
    }
  });
});

describe("TLS", () => {
  let authority: Authority;
  let server: RedisServer;
  let port: number;

  beforeAll(async () => {
    authority = await Authority.make();
    const { cert, key } = await authority.sign("redis");
    server = await onFreePorts(1, ([tlsPort = 0]) => {
      port = tlsPort;
      const files = ["--tls-cert-file", cert, "--tls-key-file", key];
      const clients = ["--tls-ca-cert-file", authority.ca, "--tls-auth-clients", "no"];
      return startRedis({ args: ["--tls-port", `${tlsPort}`, ...files, ...clients] });
    });
  });
  afterAll(async () => {
    await server?.close();
    await authority?.[Symbol.asyncDispose]();
  });

  const openers: Record<Library, () => Promise<Opened>> = {
    ioredis: async () => {
      return ioredis(new Redis({ host, port, tls: { ca: readFileSync(authority.ca) } }));
    },
    "node-redis": () => {
      const socket = { host, port, tls: true, ca: readFileSync(authority.ca) } as const;
      return nodeRedis(createClient({ socket }));
    },
  };
  const open = async (library: Library, trial: Trial): Promise<Holdfast> =>
    trial.by(await openers[library]());

  test.for(libraries)("%s", async (library) => {
    const trial = new Trial(server);
    try {
      const locks = [await open(library, trial), await open(library, trial)] as const;
      await useAll(trial, locks);
      // The store's own connections use the options of the client.
      const clients = String(await server.ask("CLIENT", "LIST"));
      expect(clients.match(new RegExp(`laddr=${host}:${port} .* sub=1`, "g"))).toHaveLength(2);
      expect(clients.match(new RegExp(`laddr=${host}:${server.port} `, "g"))).toHaveLength(1);
      await trial.end(locks[0], 5_000);
    } finally {
      await trial.close();
    }
  });

  test("by URL, with a private authority", async () => {
    const trial = new Trial(server);
    const beliefs = join(server.dir, "beliefs");
    const url = `rediss://${host}:${port}?namespace=${trial.namespace}`;
    const args = [url, trial.name, beliefs, "1", "2000"];
    const env = { NODE_EXTRA_CA_CERTS: authority.ca };
    const module = new URL("../stores/contender.mjs", import.meta.url);
    await using contender = startProcess(module, { args, env });
    try {
      const locks = trial.ioredis(server.port);
      await expect.poll(() => readFileSync(beliefs, "utf8")).toMatch(/^\d+ \d+\n/);
      await trial.turn(locks, { waitMs: 20_000 });
      await contender.send({ end: true });
      expect(await contender.exited).toMatchObject({ code: 0 });
      await trial.end(locks, 5_000);
    } finally {
      await trial.close();
    }
  });
});
