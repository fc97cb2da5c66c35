/**
 * The server loses all data, data that it had not written, or data that it evicts. Then two clients
 * may trust their leases for a while. The next renewal must report the loss, and tokens must rise.
 */
import { stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { Redis } from "ioredis";
import { describe, expect, test } from "vitest";
import type { Holdfast } from "../../src/api/holdfast.js";
import { StoreError } from "../../src/errors/index.js";
import type { Lease } from "../../src/lease/lease.js";
import { Stopwatch } from "../fixtures/stopwatch.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";
import { type Library, libraries } from "./clients.js";
import { Trial } from "./trial.js";

/** Longer than a restart and a reconnect take on a busy machine: an expiry would come first. */
const TTL_MS = 3_000;
/** A renewal is sent after each third of the ttl; its reply and a reconnect take a moment. */
const NOTICE_MS = TTL_MS / 3 + 800;

/** The register has no expiry and stays; a queue has keys of its own, which go. */
const VOLATILE = ["--maxmemory-policy", "volatile-lru"];

interface Scene {
  readonly server: RedisServer;
  readonly trial: Trial;
  readonly holder: Holdfast;
  readonly other: Holdfast;
}

async function onStage(
  library: Library,
  args: readonly string[],
  play: (scene: Scene) => Promise<void>,
): Promise<void> {
  const server = await startRedis({ args });
  const trial = new Trial(server);
  try {
    const holder = await trial.open(library, server.port);
    const other = await trial.open(library, server.port);
    await play({ server, trial, holder, other });
    await trial.end(other, 1_000);
  } finally {
    await trial.close();
    await server.close();
  }
}

/** Checks that the next renewal reports the loss to the holder. */
async function isNoticed(lease: Lease): Promise<void> {
  const stopwatch = new Stopwatch();
  await waitUntil(() => lease.signal.aborted, { what: "the holder is told of the loss" });
  stopwatch.expectLessThan(NOTICE_MS, "a renewal tells the loss");
  expect(["missing", "replaced"]).toContain(lease.signal.reason.reason);
  expect(await lease.release()).toBe(false);
}

/** Makes the server evict all keys that its policy allows. */
async function evict(server: RedisServer): Promise<void> {
  const client = new Redis(server.port);
  // In one packet: a renewal in between would bring a token that is evicted, too.
  const replies = await client
    .pipeline()
    .config("SET", "maxmemory-eviction-tenacity", "100")
    .config("SET", "maxmemory", "1")
    .set("one more", "key")
    .info("keyspace")
    .config("SET", "maxmemory", "0")
    .exec();
  client.disconnect();
  const [, keyspace] = replies?.[3] ?? [];
  const { maxmemory_policy: policy = "" } = await server.info("memory");
  if (policy.startsWith("volatile")) expect(keyspace).toContain("expires=0");
  else expect(keyspace).not.toContain("keys=");
}

/** Releases each lease when it is granted: the order of the new queue may differ. */
async function released(waiting: readonly Promise<Lease>[]): Promise<void> {
  await Promise.all(waiting.map(async (wait) => (await wait).release()));
}

async function forget(scene: Scene, strike: () => Promise<unknown>): Promise<void> {
  const { server, trial, holder, other } = scene;
  await trial.turn(holder);
  await trial.raiseTokens(server);
  await trial.turn(holder);
  const lease = await trial.acquire(holder, { ttlMs: TTL_MS });
  lease.signal.throwIfAborted();
  trial.expectOverlap();
  await strike();
  // The new state has no last token; the holder's renewal brings the token it has seen.
  await isNoticed(lease);
  const next = await trial.acquire(other, { ttlMs: TTL_MS, waitMs: 20_000 });
  expect(await next.release()).toBe(true);
}

describe.concurrent("a lock that is forgotten", () => {
  for (const library of libraries) {
    test(`${library}, FLUSHALL: the next renewal reports the loss, and tokens rise`, () =>
      onStage(library, [], (scene) => forget(scene, () => scene.server.ask("FLUSHALL"))));

    test(`${library}, restart without data: the same`, () =>
      onStage(library, [], (scene) =>
        forget(scene, () => scene.server.restart({ keepData: false })),
      ));
  }

  test("FLUSHALL without a holder: a returning client brings the tokens it has seen", () =>
    onStage("ioredis", [], async ({ server, trial, holder }) => {
      await trial.turn(holder);
      await trial.raiseTokens(server);
      await trial.turn(holder);
      await server.ask("FLUSHALL");
      await trial.turn(holder);
    }));

  for (const policy of ["allkeys-lru", "allkeys-lfu", "allkeys-random"]) {
    test(`eviction, ${policy}: the same`, () =>
      onStage("ioredis", ["--maxmemory-policy", policy], (scene) =>
        forget(scene, () => evict(scene.server)),
      ));
  }

  test("the machine crashes with everysec before the grant is on disk: the same", () =>
    onStage("ioredis", ["--appendonly", "yes", "--appendfsync", "everysec"], async (scene) => {
      const { server } = scene;
      await scene.trial.turn(scene.holder);
      const log = join(server.dir, "appendonlydir", "appendonly.aof.1.incr.aof");
      const writtenBytes = (await stat(log)).size;
      await forget(scene, async () => {
        await server.kill();
        await truncate(log, writtenBytes);
        await server.start();
      });
    }));

  test("restart from a snapshot that is older than the grant: the same", () =>
    onStage("node-redis", [], async (scene) => {
      const { server } = scene;
      await scene.trial.turn(scene.holder);
      await server.ask("SAVE");
      await forget(scene, async () => {
        await server.kill();
        await server.start();
      });
    }));

  test("is granted again with a higher token while the first client still trusts its lease", () =>
    onStage("ioredis", [], async ({ server, trial, holder, other }) => {
      await trial.turn(holder);
      await trial.turn(other);
      // A new subscription makes the client check its leases; here only renewals shall report.
      await server.untilSubscribed(2);
      await trial.turn(holder);
      const lease = await trial.acquire(holder, { ttlMs: TTL_MS });
      lease.signal.throwIfAborted();
      trial.expectOverlap();
      await server.ask("FLUSHALL");
      const next = await trial.acquire(other, { ttlMs: TTL_MS });
      expect(lease.state).toBe("held");
      await isNoticed(lease);
      expect(lease.signal.reason.reason).toBe("replaced");
      // The release of the lost lease does not end the other lease.
      await next.renew();
      next.assertHeld();
      expect(await next.release()).toBe(true);
    }));

  test("restart without data: the waiters enter the queue again", () =>
    onStage("ioredis", [], async ({ server, trial, holder, other }) => {
      const lease = await trial.acquire(holder, { ttlMs: TTL_MS });
      lease.signal.throwIfAborted();
      const waiting = [1, 2].map(() => trial.acquire(other, { ttlMs: TTL_MS }));
      await trial.waiting(holder, 2);
      trial.expectOverlap();
      await server.restart({ keepData: false });
      const told = isNoticed(lease);
      await released(waiting);
      await told;
    }));
});

test("any key of a lock is deleted by hand: all waiters are served", () =>
  onStage("ioredis", [], async ({ server, trial, holder, other }) => {
    await trial.turn(holder);
    trial.expectOverlap();
    const struck = new Set<string>();
    for (let isNew = true; isNew; ) {
      const lease = await trial.acquire(holder, { ttlMs: TTL_MS });
      const waiting = [1, 2].map(() => trial.acquire(other, { ttlMs: TTL_MS, waitMs: 10_000 }));
      await trial.waiting(holder, 2);
      const keys = (await server.ask("KEYS", `{hf:${trial.namespace}}*`)) as string[];
      const next = keys.find((key) => !struck.has(key));
      isNew = next !== undefined;
      if (next) {
        struck.add(next);
        await server.ask("DEL", next);
      }
      await lease.release();
      await released(waiting);
    }
    // The register, the lock, its queue, and its waiting clients.
    expect(struck.size).toBe(4);
  }));

describe.concurrent("a lock that is kept", () => {
  // The system has the writes of a killed process: `everysec` loses them only in a system crash.
  for (const sync of ["always", "everysec"]) {
    test(`Redis is killed with appendfsync ${sync}: holder and waiter continue`, () =>
      onStage(
        "ioredis",
        ["--appendonly", "yes", "--appendfsync", sync],
        async ({ server, trial, holder, other }) => {
          const lease = await trial.acquire(holder, { ttlMs: 15_000 });
          const waiting = trial.acquire(other, { ttlMs: 15_000, storeTimeoutMs: 20_000 });
          await trial.waiting(holder, 1);
          await server.kill();
          await server.start();
          await lease.renew();
          lease.assertHeld();
          expect(await lease.release()).toBe(true);
          await (await waiting).release();
        },
      ));
  }

  test("eviction of keys that expire (volatile-lru): a lock without waiters survives", () =>
    onStage("ioredis", VOLATILE, async ({ server, trial, holder, other }) => {
      const lease = await trial.acquire(holder, { ttlMs: TTL_MS });
      await evict(server);
      await lease.renew();
      expect(await other.mutex(trial.name).tryAcquire()).toBeNull();
      expect(await lease.release()).toBe(true);
    }));

  test("the same with waiters: the holder stays, and they enter the queue again", () =>
    onStage("ioredis", VOLATILE, async ({ server, trial, holder, other }) => {
      const lease = await trial.acquire(holder, { ttlMs: TTL_MS });
      const waiting = [1, 2].map(() => trial.acquire(other, { ttlMs: TTL_MS }));
      await trial.waiting(holder, 2);
      await evict(server);
      await trial.waiting(holder, 2);
      await lease.renew();
      expect(await lease.release()).toBe(true);
      await released(waiting);
    }));

  test("maxmemory with noeviction: holders continue, new acquires fail", () =>
    onStage("node-redis", [], async ({ server, trial, holder, other }) => {
      const lease = await trial.acquire(holder, { ttlMs: TTL_MS });
      const waiting = trial.acquire(other, { ttlMs: TTL_MS });
      await trial.waiting(holder, 1);
      await server.ask("CONFIG", "SET", "maxmemory", "1");
      const refused = holder.mutex("another").acquire({ storeTimeoutMs: 300 });
      await expect(refused).rejects.toThrow(/Redis has reached maxmemory/);
      await expect(refused).rejects.toThrow(StoreError);
      await lease.renew();
      expect(await lease.release()).toBe(true);
      const next = await waiting;
      await next.renew();
      expect(await next.release()).toBe(true);
      await server.ask("CONFIG", "SET", "maxmemory", "0");
    }));
});
