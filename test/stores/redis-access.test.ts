/** The ACL rules and the TLS set-up of the documentation, word for word. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Cluster, Redis } from "ioredis";
import { createClient, createCluster, createSentinel } from "redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Holdfast } from "../../src/holdfast.js";
import { startProcess } from "../faults/process.js";
import { onFreePorts } from "../servers/free-port.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { type RedisCluster, startRedisCluster } from "../servers/redis-cluster.js";
import { type RedisSentinel, startSentinel } from "../servers/redis-sentinel.js";
import { type Client, type StoreOptions, Trial } from "./redis-trial.js";

const host = "127.0.0.1";
const OPENSSL = "openssl";
const access = { username: "locks", password: "password" };
const page = readFileSync(new URL("../../docs/stores/redis.md", import.meta.url), "utf8");
const [line = ""] = /^ACL SETUSER .*$/m.exec(page) ?? [];
const [, ofCluster = ""] = /A Cluster also needs `([^`]+)`/.exec(page) ?? [];

type Opened = Client & { on(event: string, listener: () => void): unknown };

function by(trial: Trial, client: unknown, close: () => unknown, options?: StoreOptions): Holdfast {
  (client as Opened).on("error", () => {});
  return trial.by(client as Client, close, options);
}

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

  const open = {
    ioredis: async (trial: Trial) => {
      const nodes = cluster.masters.map(({ server: { port } }) => ({ host, port }));
      const client = new Cluster(nodes, { redisOptions: access });
      return by(trial, client, () => client.disconnect());
    },
    "node-redis": async (trial: Trial) => {
      const rootNodes = cluster.urls.map((url) => ({ url }));
      const client = createCluster({ rootNodes, defaults: access });
      const locks = by(trial, client, () => client.destroy());
      await client.connect();
      return locks;
    },
  };

  test.for(["ioredis", "node-redis"] as const)("%s", async (library) => {
    const servers = cluster.masters.map(({ server }) => server);
    const trial = new Trial(...servers);
    try {
      const locks = [await open[library](trial), await open[library](trial)] as const;
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

  const options = { replicas: 1 };
  const open = {
    ioredis: async (trial: Trial) => {
      const sentinels = [...group.addresses];
      const client = new Redis({ sentinels, name: group.masterName, ...access });
      return by(trial, client, () => client.disconnect(), options);
    },
    "node-redis": async (trial: Trial) => {
      const client = createSentinel({
        name: group.masterName,
        sentinelRootNodes: [...group.addresses],
        nodeClientOptions: access,
      });
      const locks = by(trial, client, () => client.destroy(), options);
      await client.connect();
      return locks;
    },
  };

  test.for(["ioredis", "node-redis"] as const)("%s", async (library) => {
    const trial = new Trial(...group.servers);
    try {
      await useAll(trial, [await open[library](trial), await open[library](trial)]);
      await trial.end(await open[library](trial), 5_000);
      expect(await denied(group.servers)).toEqual([]);
    } finally {
      await trial.close();
    }
  });
});

describe("TLS", () => {
  let folder: string;
  let server: RedisServer;
  let port: number;
  const file = (name: string): string => join(folder, name);

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "holdfast-tls-"));
    const openssl = (...args: string[]) => execFileSync(OPENSSL, args, { stdio: "pipe" });
    const days = ["-days", "2", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
    const authority = ["-keyout", file("ca.key"), "-out", file("ca.pem"), "-subj", "/CN=authority"];
    openssl("req", "-x509", ...days, ...authority);
    const signed = ["-CA", file("ca.pem"), "-CAkey", file("ca.key")];
    const names = ["-subj", "/CN=redis", "-addext", `subjectAltName=IP:${host}`];
    const own = ["-keyout", file("redis.key"), "-out", file("redis.pem")];
    openssl("req", "-x509", ...days, ...own, ...names, ...signed);
    server = await onFreePorts(1, ([tlsPort = 0]) => {
      port = tlsPort;
      const files = ["--tls-cert-file", file("redis.pem"), "--tls-key-file", file("redis.key")];
      const clients = ["--tls-ca-cert-file", file("ca.pem"), "--tls-auth-clients", "no"];
      return startRedis({ args: ["--tls-port", `${tlsPort}`, ...files, ...clients] });
    });
  });
  afterAll(async () => {
    await server?.close();
    rmSync(folder, { recursive: true });
  });

  const open = {
    ioredis: async (trial: Trial) => {
      const client = new Redis({ host, port, tls: { ca: readFileSync(file("ca.pem")) } });
      return by(trial, client, () => client.disconnect());
    },
    "node-redis": async (trial: Trial) => {
      const socket = { host, port, tls: true, ca: readFileSync(file("ca.pem")) } as const;
      const client = createClient({ socket });
      const locks = by(trial, client, () => client.destroy());
      await client.connect();
      return locks;
    },
  };

  test.for(["ioredis", "node-redis"] as const)("%s", async (library) => {
    const trial = new Trial(server);
    try {
      const locks = [await open[library](trial), await open[library](trial)] as const;
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
    const url = `rediss://${host}:${port}?namespace=${trial.namespace}`;
    const args = [url, trial.name, file("beliefs"), "1", "2000"];
    const env = { NODE_EXTRA_CA_CERTS: file("ca.pem") };
    const module = new URL("./contender.mjs", import.meta.url);
    await using contender = startProcess(module, { args, env });
    try {
      const locks = trial.ioredis(server.port);
      await expect.poll(() => readFileSync(file("beliefs"), "utf8")).toMatch(/^\d+ \d+\n/);
      await trial.turn(locks, { waitMs: 5_000 });
      await contender.send({ end: true });
      expect(await contender.exited).toMatchObject({ code: 0 });
      await trial.end(locks, 5_000);
    } finally {
      await trial.close();
    }
  });
});
