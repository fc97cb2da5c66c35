/** Databases, prefixes, ACL rules, memory and replicas of Redis. */
import { readFileSync } from "node:fs";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { Holdfast } from "../../src/api/holdfast.js";
import { InvalidOptionError, ReplicationError, StoreError } from "../../src/errors/index.js";
import { type RedisStoreOptions, redisStore } from "../../src/stores/redis/index.js";
import { SCRIPTS } from "../../src/stores/redis/script.generated.js";
import { Stopwatch } from "../fixtures/stopwatch.js";
import {
  type RedisServer,
  type Replication,
  startRedis,
  startReplication,
} from "../servers/redis.js";

const open: (() => unknown)[] = [];

function closeLater<T>(value: T, close: () => unknown): T {
  open.push(close);
  return value;
}

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

function connect(port: number, options: object = {}): Redis {
  const client = new Redis({ port, ...options });
  client.on("error", () => {});
  return closeLater(client, () => client.disconnect());
}

function locksBy(client: Redis, options: Partial<RedisStoreOptions> = {}): Holdfast {
  const locks = new Holdfast(redisStore({ client, ...options }));
  return closeLater(locks, () => locks.close());
}

/** The number of waiters that the script keeps, see lua/rules.lua. */
async function waitingAt(client: Redis, key: string): Promise<number> {
  return Number((await client.hget(key, "k"))?.split(" ")[1]);
}

describe("one server", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server?.close());

  test("the script is sent again after SCRIPT FLUSH", async () => {
    const locks = locksBy(connect(server.port));
    await (await locks.mutex("flushed").acquire()).release();
    await server.ask("SCRIPT", "FLUSH");
    const lease = await locks.mutex("flushed").acquire();
    await server.ask("SCRIPT", "FLUSH");
    expect(await lease.release()).toBe(true);
  });

  test("a release that is sent again is not in the way of a try behind it", async () => {
    const locks = locksBy(connect(server.port));
    const m = locks.mutex("resent", { release: "sent" });
    for (let round = 0; round < 20; round += 1) {
      const lease = await m.acquire();
      // The server knows only the script of the try.
      await server.ask("SCRIPT", "FLUSH");
      await server.ask("SCRIPT", "LOAD", SCRIPTS.acquire);
      const [, next] = await Promise.all([lease.release(), m.tryAcquire()]);
      expect(next).not.toBeNull();
      await next?.release();
    }
  });

  test("a client locks in its own database, with its own prefix", async () => {
    const locks = locksBy(connect(server.port, { db: 5, keyPrefix: "my app:" }), {
      namespace: "a{b} c",
    });
    const other = locksBy(connect(server.port), { namespace: "a{b} c" });
    const lease = await locks.mutex("m").acquire();
    expect(await other.mutex("m").tryAcquire()).not.toBeNull();
    const keys = (await connect(server.port, { db: 5 }).keys("*")) as string[];
    expect(keys.sort()).toEqual(["my app:{hf:a%7Bb%7D%20c}"]);
    const listed = [];
    for await (const view of locks.list({ prefix: "m" })) listed.push(view.name);
    expect(listed).toEqual(["m"]);
    const waiting = locks.mutex("m").acquire({ fairness: "strict" });
    await lease.release();
    await (await waiting).release();
  });

  test("node-redis locks in its own database", async () => {
    const client = createClient({ url: server.url, database: 7 });
    closeLater(await client.connect(), () => client.destroy());
    const locks = new Holdfast(redisStore({ client }));
    closeLater(locks, () => locks.close());
    await using _ = await locks.mutex("seven").acquire();
    expect(await connect(server.port, { db: 7 }).hexists("{hf:}", "l:seven")).toBe(1);
  });

  test("the ACL rules of the documentation are enough and necessary", async () => {
    const page = readFileSync(new URL("../../docs/stores/redis.md", import.meta.url), "utf8");
    const [line = ""] = /^ACL SETUSER .*$/m.exec(page) ?? [];
    await server.ask(...line.split(" "));
    const user = { username: "locks", password: "password" };
    const locks = locksBy(connect(server.port, user), { namespace: "acl" });
    const other = locksBy(connect(server.port, user), { namespace: "acl" });
    const lease = await locks.mutex("m").acquire();
    const waiting = other.mutex("m").acquire();
    expect(await lease.release()).toBe(true);
    expect(await locks.revoke("m", { token: (await waiting).token, reason: "test" })).toBe(true);
    const read = await locks.readWrite("m").read.acquire();
    await other.semaphore("s", 3).run(async () => {}, { weight: 2 });
    expect((await other.once("o", async () => 1, { keepMs: 1_000 })).ran).toBe(true);
    for await (const view of locks.list()) expect(view.name).toBe("m");
    await read.renew();
    await read.release();

    await server.ask("ACL", "SETUSER", "locks", "-hset");
    const refused = await locks
      .mutex("n")
      .acquire({ waitMs: 5_000 })
      .catch((error) => error);
    expect(refused).toBeInstanceOf(StoreError);
    expect(refused).toMatchObject({ retryable: false });
    expect(refused.message).toContain("ACL");
  });

  test("at maxmemory everything works except new acquires", async () => {
    const locks = locksBy(connect(server.port), { namespace: "full" });
    const other = locksBy(connect(server.port), { namespace: "full" });
    const held = await locks.mutex("a").acquire();
    const waiting = other.mutex("a").acquire();
    const shared = await locks.semaphore("s", 2).acquire();
    const plain = await locks.mutex("b").acquire();
    await expect.poll(async () => (await locks.inspect("a")).waiters.length).toBe(1);
    await server.ask("CONFIG", "SET", "maxmemory", "1mb");
    try {
      const refused = await locks
        .mutex("c")
        .acquire({ storeTimeoutMs: 300 })
        .catch((e) => e);
      expect(refused).toBeInstanceOf(StoreError);
      await plain.renew(60_000);
      await shared.renew(60_000);
      expect(await plain.release()).toBe(true);
      expect(await shared.release()).toBe(true);
      expect(await held.release()).toBe(true);
      expect(await (await waiting).release()).toBe(true);
    } finally {
      await server.ask("CONFIG", "SET", "maxmemory", "0");
    }
  });

  test("10,000 waiters make no command slow", async () => {
    const client = connect(server.port);
    const locks = locksBy(client, { namespace: "long" });
    const first = await locks.mutex("m").acquire();
    const stop = new AbortController();
    const waits = Array.from({ length: 10_000 }, () =>
      locks
        .mutex("m")
        .acquire({ fairness: "strict", signal: stop.signal })
        .catch(() => null),
    );
    await expect
      .poll(() => waitingAt(client, "{hf:long}:l:m"), { timeout: 60_000, interval: 200 })
      .toBe(10_000);
    await server.ask("CONFIG", "RESETSTAT");
    const stopwatch = new Stopwatch();
    await first.release();
    const second = await waits[0];
    expect(await second?.release()).toBe(true);
    const { cmdstat_evalsha = "" } = await server.info("commandstats");
    const callMs = Number(/usec_per_call=([\d.]+)/.exec(cmdstat_evalsha)?.[1]) / 1_000;
    expect(callMs).toBeLessThan(stopwatch.limitMs(2));
    stop.abort();
    await Promise.all(waits);
  });
});

test("an unknown client is refused", () => {
  expect(() => redisStore({ client: {} as never })).toThrow(InvalidOptionError);
});

describe("with replicas", () => {
  let replication: Replication;
  beforeAll(async () => {
    replication = await startReplication({ replicas: 1 });
  });
  afterAll(() => replication?.[Symbol.asyncDispose]());

  test("a grant counts only when the replicas have it, and is released otherwise", async () => {
    const { master, replicas } = replication;
    const client = connect(master.port);
    const options = { namespace: "r", replicas: 1, replicaTimeoutMs: 200 };
    const locks = locksBy(client, options);
    const other = locksBy(connect(master.port), options);
    const lease = await locks.mutex("m").acquire();
    expect(await replicas[0]?.ask("HEXISTS", "{hf:r}", "l:m")).toBe(1);
    const waiting = other.mutex("m").acquire();
    await lease.release();
    await (await waiting).release();

    await replicas[0]?.pause();
    try {
      const refused = await locks
        .mutex("n")
        .acquire()
        .catch((error) => error);
      expect(refused).toBeInstanceOf(ReplicationError);
      expect(refused).toMatchObject({ asked: 1, acknowledged: 0, timeoutMs: 200 });
      await expect.poll(async () => (await locks.inspect("n")).holders).toEqual([]);
    } finally {
      replicas[0]?.resume();
    }
    await (await locks.mutex("n").acquire({ waitMs: 10_000 })).release();
  });
});
