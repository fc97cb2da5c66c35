/**
 * The server forgets: all of it, what it had not written, or what it has no room for. Then two may
 * believe for a while; the loss must be told with the next renewal, and the tokens must rise.
 */
import { stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { StoreError } from "../../src/errors.js";
import type { Holdfast } from "../../src/holdfast.js";
import type { Lease } from "../../src/lease/lease.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";
import { Trial } from "./redis-trial.js";

const TTL_MS = 1_500;
/** A renewal is sent each third of the ttl; then its answer, and a client that reconnects. */
const NOTICE_MS = TTL_MS / 3 + 800;

/** The register has no expiry and stays; a lock with waiters has a key of its own, and goes. */
const VOLATILE = ["--maxmemory-policy", "volatile-lru"];

interface Scene {
  readonly server: RedisServer;
  readonly trial: Trial;
  readonly holder: Holdfast;
  readonly other: Holdfast;
}

const libraries = {
  ioredis: async (trial: Trial, port: number) => trial.ioredis(port),
  "node-redis": (trial: Trial, port: number) => trial.nodeRedis(port),
};

async function onStage(
  library: keyof typeof libraries,
  args: readonly string[],
  play: (scene: Scene) => Promise<void>,
): Promise<void> {
  const server = await startRedis({ args });
  const trial = new Trial(server);
  try {
    const open = libraries[library];
    const holder = await open(trial, server.port);
    const other = await open(trial, server.port);
    await play({ server, trial, holder, other });
    await trial.end(other, 1_000);
  } finally {
    await trial.close();
    await server.close();
  }
}

/** The holder learns of its loss with its next renewal, and from the store. */
async function isNoticed(lease: Lease, sinceMs: number): Promise<void> {
  await waitUntil(() => lease.signal.aborted, { what: "the loss is told" });
  expect(performance.now() - sinceMs).toBeLessThan(NOTICE_MS);
  expect(["missing", "replaced"]).toContain(lease.signal.reason.reason);
  expect(await lease.release()).toBe(false);
}

async function isListening(server: RedisServer, count: number): Promise<boolean> {
  const clients = String(await server.ask("CLIENT", "LIST", "TYPE", "pubsub"));
  return (clients.match(/ sub=1 /g) ?? []).length === count;
}

/** Has the server find room where there is none, until all keys that it may throw away are gone. */
async function evict(server: RedisServer): Promise<void> {
  const { maxmemory_policy: policy = "" } = await server.info("memory");
  await server.ask("CONFIG", "SET", "maxmemory", "1");
  const isEmpty = async (): Promise<boolean> => {
    // It throws away for half a millisecond at a time.
    await server.ask("SET", "one more", "key").catch(() => {});
    const { db0 = "keys=0,expires=0" } = await server.info("keyspace");
    return (policy.startsWith("volatile") ? /expires=0/ : /keys=0/).test(db0);
  };
  await waitUntil(isEmpty, { what: "all is evicted" });
  await server.ask("CONFIG", "SET", "maxmemory", "0");
}

/** Each when it is granted: those who stand in line again may do so in another order. */
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
  const sinceMs = performance.now();
  // The new state knows nothing of the tokens; the holder's renewal brings what it has seen.
  await isNoticed(lease, sinceMs);
  const next = await trial.acquire(other, { ttlMs: TTL_MS, waitMs: 2_000 });
  expect(await next.release()).toBe(true);
}

describe.concurrent("a lock that is forgotten", () => {
  for (const library of ["ioredis", "node-redis"] as const) {
    test(`${library}, FLUSHALL: the loss is told with the next renewal, tokens rise`, () =>
      onStage(library, [], (scene) => forget(scene, () => scene.server.ask("FLUSHALL"))));

    test(`${library}, restart without data: the same`, () =>
      onStage(library, [], (scene) =>
        forget(scene, () => scene.server.restart({ keepData: false })),
      ));
  }

  test("FLUSHALL while nobody holds it: who comes back brings the tokens it has seen", () =>
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

  test("the machine crashes with everysec, before the grant was on its disk: the same", () =>
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

  test("is given to the next, with a higher token, while the first still believes", () =>
    onStage("ioredis", [], async ({ server, trial, holder, other }) => {
      await trial.turn(holder);
      await trial.turn(other);
      // A subscription that comes up looks after what is held: only renewals shall tell.
      await waitUntil(() => isListening(server, 2), { what: "both listen" });
      await trial.turn(holder);
      const lease = await trial.acquire(holder, { ttlMs: TTL_MS });
      lease.signal.throwIfAborted();
      trial.expectOverlap();
      await server.ask("FLUSHALL");
      const next = await trial.acquire(other, { ttlMs: TTL_MS });
      expect(lease.state).toBe("held");
      await isNoticed(lease, performance.now());
      expect(lease.signal.reason.reason).toBe("replaced");
      // The release of the one who lost it takes nothing from the other.
      await next.renew();
      next.assertHeld();
      expect(await next.release()).toBe(true);
    }));

  const strikes: readonly [string, readonly string[], (server: RedisServer) => Promise<void>][] = [
    ["restart without data", [], (server) => server.restart({ keepData: false })],
    ["eviction of what expires (volatile-lru)", VOLATILE, evict],
  ];
  for (const [title, args, strike] of strikes) {
    test(`${title}: those who waited stand in line again`, () =>
      onStage("ioredis", args, async ({ server, trial, holder, other }) => {
        const lease = await trial.acquire(holder, { ttlMs: TTL_MS });
        lease.signal.throwIfAborted();
        const waiting = [1, 2].map(() => trial.acquire(other, { ttlMs: TTL_MS }));
        await trial.waiting(holder, 2);
        trial.expectOverlap();
        await strike(server);
        const sinceMs = performance.now();
        const told = isNoticed(lease, sinceMs);
        await released(waiting);
        await told;
      }));
  }
});

test("any key of a lock is deleted by hand: all who wait are served", () =>
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
    // The register, the lock, and its waiting clients.
    expect(struck.size).toBe(3);
  }));

describe.concurrent("a lock that is kept", () => {
  // What a killed process wrote is with the system: `everysec` loses it only with the machine.
  for (const sync of ["always", "everysec"]) {
    test(`Redis is killed with appendfsync ${sync}: holder and waiter go on`, () =>
      onStage(
        "ioredis",
        ["--appendonly", "yes", "--appendfsync", sync],
        async ({ server, trial, holder, other }) => {
          const lease = await trial.acquire(holder, { ttlMs: 5_000 });
          const waiting = trial.acquire(other, { ttlMs: 5_000, storeTimeoutMs: 5_000 });
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

  test("eviction of what expires (volatile-lru): a lock that nobody waits for goes on", () =>
    onStage("ioredis", VOLATILE, async ({ server, trial, holder, other }) => {
      const lease = await trial.acquire(holder, { ttlMs: TTL_MS });
      await evict(server);
      await lease.renew();
      expect(await other.mutex(trial.name).tryAcquire()).toBeNull();
      expect(await lease.release()).toBe(true);
    }));

  test("maxmemory with noeviction: holders go on, newcomers are told", () =>
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
