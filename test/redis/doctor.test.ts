/** Servers that are configured wrongly on purpose, and good ones. */

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Cluster, Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect } from "../../src/api/connect.js";
import { Holdfast } from "../../src/api/holdfast.js";
import type { Severity } from "../../src/contract/examination.js";
import { type RedisStoreOptions, redisStore } from "../../src/stores/redis/index.js";
import { startCommandProxy } from "../faults/command-proxy.js";
import { startProxy } from "../faults/proxy.js";
import { isFull } from "../fixtures/depth.js";
import { makeClocks } from "../servers/clock-shift.js";
import { type RedisServer, startRedis, startReplication } from "../servers/redis.js";
import { fetchRedis60, startRedis60 } from "../servers/redis-6-0.js";
import { startRedisCluster } from "../servers/redis-cluster.js";
import { startSentinel } from "../servers/redis-sentinel.js";
import { waitUntil } from "../servers/wait-until.js";
import { type Examined, examined, expectFound, expectGood } from "../stores/examined.js";

const DURABLE = ["--appendonly", "yes", "--appendfsync", "everysec"];
const TTL_MS = 30_000;

type Options = Partial<RedisStoreOptions>;
type Settings = readonly (readonly [string, string])[];

/** Examines through a client of its own. */
async function examine(
  { port }: Pick<RedisServer, "port">,
  options: Options = {},
  ttlMs = TTL_MS,
  user: { username?: string; password?: string } = {},
): Promise<Examined> {
  const client = new Redis({ port, ...user });
  client.on("error", () => {});
  try {
    return await examined(new Holdfast(redisStore({ client, ...options })), ttlMs);
  } finally {
    client.disconnect();
  }
}

describe("one server", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis({ args: DURABLE });
  });
  afterAll(() => server.close());

  /** Examines the server with other settings, and puts the old ones back. */
  async function withSettings(settings: Settings): Promise<Examined> {
    const before: [string, string][] = [];
    try {
      for (const [name, value] of settings) {
        const [, old = ""] = (await server.ask("CONFIG", "GET", name)) as string[];
        before.unshift([name, old]);
        await server.ask("CONFIG", "SET", name, value);
      }
      return await examine(server);
    } finally {
      for (const [name, value] of before) await server.ask("CONFIG", "SET", name, value);
    }
  }

  test("is good with an append-only file and without eviction", async () => {
    const found = await examine(server);
    expectGood(found);
    expect(found.ids("skipped", "note")).toEqual([]);
    expect(found.survives("The server restarts")).toBe(true);
    expect(found.survives("The machine of the server crashes")).toBe(false);
    expect(found.of("redis/version").what).toMatch(/(Redis|Valkey) \d/);
  });

  test("is good through node-redis and by a URL", async () => {
    const client = createClient({ socket: { port: server.port } });
    await client.connect();
    expectGood(await examined(new Holdfast(redisStore({ client }))));
    client.destroy();
    const byUrl = await examined(await connect(`${server.url}/3?namespace=doctor`));
    expectGood(byUrl);
    expect(byUrl.ids("skipped")).toEqual([]);
  });

  test("is left as it was", async () => {
    const before = await server.ask("DEBUG", "DIGEST");
    const { port } = server;
    const client = new Redis({ port, keyPrefix: "app:" });
    expectGood(await examined(new Holdfast(redisStore({ client, namespace: "untouched" }))));
    client.disconnect();
    expect(await server.ask("DEBUG", "DIGEST")).toBe(before);
  });

  test.each<[readonly [string, Severity][], Settings]>([
    [
      [
        ["redis/eviction", "danger"],
        ["redis/persistence", "warning"],
        ["redis/idle-timeout", "warning"],
        ["redis/output-buffer", "warning"],
        ["redis/min-replicas", "danger"],
      ],
      [
        ["maxmemory", "1gb"],
        ["maxmemory-policy", "allkeys-lru"],
        ["appendonly", "no"],
        ["timeout", "5"],
        ["client-output-buffer-limit", "pubsub 1024 512 1"],
        ["min-replicas-to-write", "1"],
      ],
    ],
    [
      [
        ["redis/eviction", "danger"],
        ["redis/persistence", "warning"],
        ["redis/memory", "danger"],
      ],
      [
        ["maxmemory-policy", "volatile-ttl"],
        ["appendfsync", "no"],
        ["maxmemory", "1"],
      ],
    ],
    [[["redis/eviction", "note"]], [["maxmemory-policy", "allkeys-lru"]]],
  ])("is found to have %j", async (planted, settings) => {
    const found = await withSettings(settings);
    for (const [id, severity] of planted) expectFound(found, id, severity);
    const ids = planted.filter(([, severity]) => severity !== "note").map(([id]) => id);
    expect(found.ids("warning", "danger").sort()).toEqual(ids.sort());
  });

  test("says that memory and connections get scarce", async () => {
    const idle = await Promise.all(Array.from({ length: 36 }, () => server.client()));
    await server.ask("SETRANGE", "large", 40_000_000, "x");
    const { used_memory = "0" } = await server.info("memory");
    const most = Math.round(Number(used_memory) / 0.95);
    try {
      const found = await withSettings([
        ["maxclients", "40"],
        ["maxmemory", `${most}`],
      ]);
      expectFound(found, "redis/memory", "warning");
      expectFound(found, "redis/connections", "warning");
    } finally {
      await server.ask("DEL", "large");
      await Promise.all(idle.map((client) => client.close()));
    }
  });

  test("says that a restart without persistence forgets all locks", async () => {
    const found = await withSettings([["appendonly", "no"]]);
    expect(found.survives("The server restarts")).toBe(false);
    const { failureCases } = found.examination;
    const { outcome } = failureCases.find(({ event }) => event === "The server restarts") ?? {};
    expect(outcome).toBe(
      "All locks are forgotten: two processes may both think they hold it for up to 10 s, " +
        "until a renewal fails.",
    );
  });

  test("says that replicas are missing", async () => {
    const found = await examine(server, { replicas: 1 });
    expectFound(found, "redis/replicas", "danger");
  });

  test("judges the way to the server by the ttl", async () => {
    await using proxy = await startProxy({ targetPort: server.port });
    proxy.delay("replies", 20);
    expectFound(await examine(proxy, {}, 50), "redis/round-trip", "warning");
    expect((await examine(proxy)).of("redis/round-trip").severity).toBe("ok");
  });

  test("says which rights are missing, and which checks it could not do", async () => {
    const user = async (name: string, ...rules: string[]): Promise<Examined> => {
      await server.ask("ACL", "SETUSER", name, "reset", "on", ">secret", ...rules);
      return await examine(server, {}, TTL_MS, { username: name, password: "secret" });
    };
    const keys = ["~{hf:*", "&{hf:*", "+@all", "-@dangerous", "+info"];
    const least = await user("least", ...keys);
    expectGood(least);
    expect(least.ids("skipped")).toContain("redis/idle-timeout");
    expect(least.of("redis/idle-timeout").what).toMatch(/CONFIG GET.*NOPERM/);
    const narrow = await user("narrow", ...keys, "-hset", "-zadd");
    expectFound(narrow, "redis/rights", "danger");
    expect(narrow.of("redis/rights").what).toContain("hset, zadd");
    const deaf = await user("deaf", ...keys, "resetchannels");
    expectFound(deaf, "redis/messages", "warning");
    const mute = await user("mute", ...keys, "-eval", "-evalsha");
    expectFound(mute, "redis/script", "danger");
  });

  test("says that nothing can be saved", async () => {
    mkdirSync(join(server.dir, "dump.rdb"));
    await server.ask("SET", "a", "value");
    await server.ask("BGSAVE");
    const failed = async (): Promise<boolean> =>
      (await server.info("persistence")).rdb_last_bgsave_status === "err";
    await waitUntil(failed, { what: "a snapshot that fails" });
    expectFound(await withSettings([["save", "3600 1"]]), "redis/saving", "danger");
    expectFound(await withSettings([["save", ""]]), "redis/saving", "warning");
  });
});

test.concurrent("a clock that is wrong or jumps is found", async (context) => {
  const clocks = makeClocks();
  if (!clocks) return context.skip("a C compiler and LD_PRELOAD are needed");
  try {
    const clock = clocks.clock("doctor");
    await using server = await startRedis({ args: DURABLE, env: clock.env });
    await clock.shift(7_200_000, server);
    expectFound(await examine(server), "redis/clock-skew", "warning");
    let isOver = false;
    const examining = examine(server).finally(() => {
      isOver = true;
    });
    for (let byMs = 100; !isOver; byMs += 100) await clock.shift(byMs, server);
    expectFound(await examining, "redis/clock-drift", "danger");
  } finally {
    clocks.end();
  }
});

test.concurrent("a proxy that answers WAIT itself is found, and WAIT changes nothing", async () => {
  await using replication = await startReplication({ replicas: 1, args: DURABLE });
  const { master, replicas } = replication;
  const before = await master.ask("DEBUG", "DIGEST");
  const good = await examine(master, { replicas: 1 });
  expectGood(good);
  expect(good.of("redis/wait").severity).toBe("ok");
  expect(await master.ask("DEBUG", "DIGEST")).toBe(before);
  await using liar = await startCommandProxy(master.port, (command) => {
    return command === "wait" ? { reply: ":1\r\n" } : "pass";
  });
  const found = await examine(liar, { replicas: 1 });
  expectFound(found, "redis/wait", "danger");
  expect(found.of("redis/script").severity).toBe("ok");
  expect((await examine(liar)).ids("danger")).toEqual([]);
  await replicas[0]?.pause();
  const late = await examine(master, { replicas: 1 });
  replicas[0]?.resume();
  expect(late.of("redis/wait")).toMatchObject({
    severity: "danger",
    what: expect.stringContaining("0 of 1 replicas"),
  });
});

test.concurrent("proxies that refuse scripts, or drop messages, are found", async () => {
  await using server = await startRedis({ args: DURABLE });
  await using narrow = await startCommandProxy(server.port, (command) => {
    return command.startsWith("eval") ? { reply: "-ERR unknown command 'eval'\r\n" } : "pass";
  });
  expectFound(await examine(narrow), "redis/script", "danger");
  await using mute = await startCommandProxy(server.port, (command) => {
    return command === "publish" ? { reply: ":0\r\n" } : "pass";
  });
  expectFound(await examine(mute), "redis/messages", "warning");
});

test.runIf(isFull).concurrent("a server that is too old is found", async (context) => {
  const programs = await fetchRedis60().catch(() => null);
  if (programs === null) return context.skip("Redis 6.0 cannot be fetched");
  await using server = await startRedis60(programs);
  expectFound(await examine(server), "redis/version", "danger");
});

test.concurrent("replicas that are left out, not in sync or connected to are found", async () => {
  await using replication = await startReplication({ replicas: 1, args: DURABLE });
  const { master, replicas } = replication;
  const [replica] = replicas;
  const all = await examine(master, { replicas: 1 });
  expectGood(all);
  expect(all.survives("A replica takes over")).toBe(true);
  const none = await examine(master);
  expectFound(none, "redis/replicas", "note");
  expect(none.survives("A replica takes over")).toBe(false);
  if (replica) expectFound(await examine(replica), "redis/role", "danger");
  await master.ask("CONFIG", "SET", "repl-diskless-sync-delay", "600");
  await using late = await startRedis({ args: ["--replicaof", "127.0.0.1", `${master.port}`] });
  const isListed = async (): Promise<boolean> =>
    Object.values(await master.info("replication")).some((text) =>
      text.includes(`port=${late.port},state=wait_bgsave`),
    );
  await waitUntil(isListed, { what: "a replica that is not in sync" });
  expectFound(await examine(master, { replicas: 1 }), "redis/lag", "warning");
});

test.runIf(isFull).concurrent("a lone sentinel is found", async () => {
  await using group = await startSentinel({ replicas: 1, sentinels: 1 });
  const sentinels = [...group.addresses];
  const client = new Redis({ sentinels, name: group.masterName });
  const found = await examined(new Holdfast(redisStore({ client })));
  client.disconnect();
  expectFound(found, "redis/sentinel", "warning");
  expectFound(found, "redis/replicas", "warning");
});

test.concurrent("a Cluster without all its slots and an unfit client are found", async () => {
  await using cluster = await startRedisCluster({ masters: 3, args: DURABLE });
  const [first] = cluster.masters;
  if (!first) throw new Error("A Cluster has masters.");
  const client = new Cluster([{ host: "127.0.0.1", port: first.server.port }]);
  client.on("error", () => {});
  const good = await examined(new Holdfast(redisStore({ client })));
  expectGood(good);
  expect(good.of("redis/version").what).toContain(`127.0.0.1:${first.server.port}`);
  await first.server.ask("CLUSTER", "DELSLOTSRANGE", 0, 9);
  expectFound(await examined(new Holdfast(redisStore({ client }))), "redis/cluster", "danger");
  client.disconnect();
  expectFound(await examine(first.server), "redis/cluster-client", "danger");
});

test.concurrent("a server that is away is no finding", async () => {
  const server = await startRedis();
  const locks = await connect(server.url);
  await server.close();
  await expect(locks.examine()).rejects.toMatchObject({ code: "HF_STORE" });
  await locks.close();
});
