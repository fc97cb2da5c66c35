/** The promises of the README of redlock 4: promises, callbacks, disposers, several resources. */
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import Redlock, {
  type Lock,
  LockError,
  type ScriptClient,
} from "../../src/compat/redlock4/index.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";

const LONG_MS = 30_000;
const require = createRequire(import.meta.url);

/** The used part of the package, which has no types. */
interface OriginalLock {
  unlock(): Promise<void>;
}
const Original = require("redlock4") as new (
  clients: readonly unknown[],
  options: { retryCount: number },
) => { lock(resource: string | string[], ttl: number): Promise<OriginalLock> };

let server: RedisServer;
let client: Redis;
let redlock: Redlock;
let original: InstanceType<typeof Original>;

beforeAll(async () => {
  server = await startRedis();
  client = new Redis(server.port);
});
afterAll(async () => {
  client?.disconnect();
  await server?.close();
});
beforeEach(async () => {
  await client.flushall();
  redlock = new Redlock([client], { retryCount: 2, retryDelay: 50, retryJitter: 20 });
  original = new Original([client], { retryCount: 0 });
});

async function scriptCalls(): Promise<number> {
  const stats = await server.info("commandstats");
  const calls = ["eval", "evalsha"].map((name) =>
    /calls=(\d+)/.exec(stats[`cmdstat_${name}`] ?? ""),
  );
  return calls.reduce((sum, match) => sum + Number(match?.[1] ?? 0), 0);
}

/** The result of a method that takes a callback. */
function called<T>(start: (callback: (error: Error | null, result: T) => void) => unknown) {
  return new Promise<T>((resolve, reject) => {
    start((error, result) => (error ? reject(error) : resolve(result)));
  });
}

describe("promises", () => {
  it("lock, extend and unlock", async () => {
    const lock = await redlock.lock("a", LONG_MS);
    expect(lock).toBeInstanceOf(Redlock.Lock);
    expect(lock).toMatchObject({ redlock, resource: ["a"], attempts: 1, attemptsRemaining: 1 });
    expect(await client.get("a")).toBe(lock.value);
    await assert.rejects(async () => await original.lock("a", LONG_MS), { name: "LockError" });
    const before = lock.expiration;
    await sleep(5);
    expect(await lock.extend(LONG_MS)).toBe(lock);
    expect(lock.expiration).toBeGreaterThan(before);
    await lock.unlock();
    expect(lock.expiration).toBe(0);
    expect(await client.exists("a")).toBe(0);
    await (await original.lock("a", LONG_MS)).unlock();
    const { token = 0n } = await redlock.lock("a", LONG_MS);
    expect(token).toBeGreaterThan(lock.token ?? token);
  });

  it("fail with a LockError that counts the attempts", async () => {
    await original.lock("a", LONG_MS);
    const failed = redlock.lock("a", 1_000);
    await assert.rejects(failed, (error: unknown) => {
      assert.ok(error instanceof LockError && error instanceof Redlock.LockError);
      const { name, message, attempts } = error;
      const text = 'Exceeded 2 attempts to lock the resource "a".';
      assert.deepEqual(
        { name, message, attempts },
        { name: "LockError", message: text, attempts: 3 },
      );
      return true;
    });
    const once = redlock.lockWithOptions("a", 1_000, { retryCount: 0 });
    await assert.rejects(once, { name: "LockError", attempts: 1 });
  });

  it("lock several resources, or none", async () => {
    const lock = await redlock.acquire(["a", "b", "c"], LONG_MS);
    expect(await client.mget("a", "b", "c")).toEqual(Array(3).fill(lock.value));
    await client.del("b");
    await assert.rejects(lock.extend(LONG_MS), { name: "LockError" });
    const message = 'Unable to fully release the lock on resource "a,b,c".';
    await assert.rejects(redlock.release(lock), { name: "LockError", message });
    expect(await client.exists("a", "b", "c")).toBe(0);
    await assert.rejects(lock.extend(1_000), /already expired/);
  });

  it("find the release of the old package", async () => {
    const theirs = await original.lock("a", LONG_MS);
    const before = await scriptCalls();
    const waiting = redlock.acquireWithOptions("a", LONG_MS, { retryCount: -1, retryDelay: 40 });
    // A server that does not know the script yet is called twice by the first attempt.
    await waitUntil(async () => (await scriptCalls()) > before + 2, { what: "two attempts" });
    await theirs.unlock();
    expect((await waiting).attempts).toBeGreaterThan(1);
  });
});

describe("callbacks", () => {
  it("get the lock, and its end", async () => {
    const lock = await called<Lock>((callback) => redlock.lock("a", LONG_MS, callback));
    expect(await called<Lock>((callback) => lock.extend(LONG_MS, callback))).toBe(lock);
    await called((callback) => lock.unlock(callback));
    expect(await client.exists("a")).toBe(0);
  });

  it("get the error, which no other handler has to catch", async () => {
    await original.lock("a", LONG_MS);
    const locked = called((callback) => redlock.lock("a", 1_000, callback));
    await assert.rejects(locked, { name: "LockError" });
  });
});

describe("disposers", () => {
  it("are for using of bluebird", async () => {
    const { using } = require("bluebird") as {
      using<T>(disposer: unknown, body: (lock: Lock) => Promise<T>): Promise<T>;
    };
    const result = await using(redlock.disposer("a", LONG_MS), async (lock) => {
      expect(await client.get("a")).toBe(lock.value);
      return 7;
    });
    expect(result).toBe(7);
    expect(await client.exists("a")).toBe(0);
    const seen: unknown[] = [];
    await using(
      redlock.disposer("a", LONG_MS, (error) => seen.push(error)),
      async () => {
        await client.del("a");
      },
    );
    expect(seen).toMatchObject([{ name: "LockError" }]);
  });
});

it("works with the client of its README, redis 3", async () => {
  const { createClient } = require("redis3") as {
    createClient(port: number): ScriptClient & { end(flush: boolean): void };
  };
  const old = createClient(server.port);
  const lock = await new Redlock([old], { retryCount: 0 }).lock("a", LONG_MS);
  expect(await client.get("a")).toBe(lock.value);
  await assert.rejects(redlock.lock("a", 1_000), { name: "LockError" });
  await (await lock.extend(LONG_MS)).unlock();
  old.end(true);
});

describe("failures", () => {
  it("of a client are events", async () => {
    const dead = new Redis(server.port, { lazyConnect: true, enableOfflineQueue: false });
    const failing = new Redlock([dead, client, client.duplicate()], { retryCount: 0 });
    const seen: Error[] = [];
    failing.on("clientError", (error: Error) => seen.push(error));
    const lock = await failing.lock("a", LONG_MS).catch(() => null);
    expect(seen.length).toBeGreaterThan(0);
    await lock?.unlock().catch(() => {});
    for (const one of failing.servers.slice(2)) (one as Redis).disconnect();
  });

  it("that no call can cure throw at construction", () => {
    assert.throws(() => new Redlock([]), /at least one redis server/);
    const custom = { lockScript: (script: string) => script };
    assert.throws(() => new Redlock([client], custom), /custom lockScript.*Leave the option out/);
  });
});

it("is what require gives to a program in CommonJS", () => {
  const Required = require("../../dist/compat/redlock4/index.js") as typeof Redlock;
  expect(typeof Required).toBe("function");
  expect(new Required([client]).retryJitter).toBe(100);
});
