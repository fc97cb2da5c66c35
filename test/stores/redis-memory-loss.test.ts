/**
 * The server forgets: all of it, what it had not written, or what it has no room for. Then two may
 * believe for a while; the loss must be told with the next renewal, and the tokens must rise.
 */
import { describe, expect, test } from "vitest";
import { StoreError } from "../../src/errors.js";
import type { Holdfast } from "../../src/holdfast.js";
import type { Lease } from "../../src/lease/lease.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";
import { Trial } from "./redis-trial.js";

const TTL_MS = 1_500;
/** A renewal is sent each third of the ttl; then its answer, and a client that reconnects. */
const NOTICE_MS = TTL_MS / 3 + 500;

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

  test("eviction: the same", () =>
    onStage("ioredis", ["--maxmemory-policy", "allkeys-random"], (scene) =>
      forget(scene, async () => {
        await scene.server.ask("CONFIG", "SET", "maxmemory", "1");
        await scene.server.ask("SET", "one more", "key").catch(() => {});
        await scene.server.ask("CONFIG", "SET", "maxmemory", "0");
      }),
    ));

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

  test("those who waited stand in line again", () =>
    onStage("ioredis", [], async ({ server, trial, holder, other }) => {
      const lease = await trial.acquire(holder, { ttlMs: TTL_MS });
      const waiting = [1, 2].map(() => trial.acquire(other, { ttlMs: TTL_MS }));
      await trial.waiting(holder, 2);
      trial.expectOverlap();
      await server.restart({ keepData: false });
      for (const wait of waiting) await (await wait).release();
      expect(await lease.release()).toBe(false);
    }));
});

describe.concurrent("a lock that is kept", () => {
  test("restart with appendfsync always: holder and waiter go on", () =>
    onStage(
      "ioredis",
      ["--appendonly", "yes", "--appendfsync", "always"],
      async ({ server, trial, holder, other }) => {
        const lease = await trial.acquire(holder, { ttlMs: 5_000 });
        const waiting = trial.acquire(other, { ttlMs: 5_000, storeTimeoutMs: 5_000 });
        await trial.waiting(holder, 1);
        // As a crash: nothing is written on the way out.
        await server.kill();
        await server.start();
        await lease.renew();
        lease.assertHeld();
        expect(await lease.release()).toBe(true);
        await (await waiting).release();
      },
    ));

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
