/**
 * The wall clock of the server is set, under a holder and those who wait. Ahead, it frees the lock
 * early: two may believe, until the first is told. Back, it keeps the lock longer, and nobody may.
 * Either way the tokens rise, all who wait are served, and no belief outlasts the own ttl.
 */
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Holdfast } from "../../src/holdfast.js";
import type { Lease } from "../../src/lease/lease.js";
import { makeClocks } from "../servers/clock-shift.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";
import { Trial } from "./redis-trial.js";

const TTL_MS = 1_500;
/** A renewal is sent each third of the ttl; then its answer. */
const NOTICE_MS = TTL_MS / 3 + 500;
const AHEAD_MS = 60_000;
const BACK_MS = -120_000;

const libraries = {
  ioredis: async (trial: Trial, port: number) => trial.ioredis(port),
  "node-redis": (trial: Trial, port: number) => trial.nodeRedis(port),
};

const clocks = makeClocks();
const reason = "there is no C compiler to shift a server's clock with";
describe.skipIf(!clocks)(clocks ? "the server's clock" : `skipped: ${reason}`, () => {
  const clock = clocks?.clock("redis");
  let server: RedisServer;
  let trial: Trial;
  let shiftMs = 0;
  beforeAll(async () => {
    server = await startRedis({ env: clock?.env ?? {} });
  });
  afterAll(async () => {
    await server?.close();
    clocks?.end();
  });
  beforeEach(() => {
    trial = new Trial(server);
  });
  afterEach(() => trial.close());

  /** By so much from what it shows now. */
  async function jump(byMs: number): Promise<void> {
    shiftMs += byMs;
    await clock?.shift(shiftMs, server);
  }

  async function isTold(lease: Lease, sinceMs: number): Promise<void> {
    await waitUntil(() => lease.signal.aborted, { what: "the loss is told" });
    expect(performance.now() - sinceMs).toBeLessThan(NOTICE_MS);
    expect(["missing", "replaced", "expired"]).toContain(lease.signal.reason.reason);
    expect(await lease.release()).toBe(false);
  }

  /** Each who waits gets it, believes no longer than its ttl, and hands it on. */
  async function takeTurns(waits: readonly Promise<Lease>[], ttlMs: number): Promise<void> {
    for (const wait of waits) {
      const lease = await wait;
      expect(lease.remainingMs()).toBeLessThanOrEqual(ttlMs);
      lease.assertHeld();
      expect(await lease.release()).toBe(true);
    }
  }

  test("jumps back: what the dead leave stays, until it is set right", async () => {
    const client = new Redis({ port: server.port, retryStrategy: () => null });
    client.on("error", () => {});
    const dying = trial.by(client, () => client.disconnect());
    const other = trial.ioredis(server.port);
    await trial.turn(other);
    const lease = await trial.acquire(dying, { ttlMs: TTL_MS, renew: false });
    await jump(BACK_MS);
    client.disconnect();
    await waitUntil(() => lease.state === "lost", { what: "the own deadline" });
    const waiting = trial.acquire(other);
    await trial.waiting(other, 1);
    const [held] = (await other.inspect(trial.name)).holders;
    expect(held?.token).toBe(lease.token);
    expect(held?.remainingMs).toBeGreaterThan(-BACK_MS - TTL_MS);
    await jump(-BACK_MS);
    await takeTurns([waiting], 2_000);
    await trial.end(other, 1_000);
  });

  for (const [library, open] of Object.entries(libraries)) {
    describe(library, () => {
      let holder: Holdfast;
      let other: Holdfast;
      beforeEach(async () => {
        holder = await open(trial, server.port);
        other = await open(trial, server.port);
        // Both know the server's time, and listen.
        await trial.turn(holder);
        await trial.turn(other);
      });

      test("jumps ahead: the loss is told with the next renewal, tokens rise", async () => {
        const lease = await trial.acquire(holder, { ttlMs: TTL_MS });
        lease.signal.throwIfAborted();
        const waits = [1, 2, 3].map(() => trial.acquire(other, { ttlMs: TTL_MS }));
        await trial.waiting(holder, 3);
        trial.expectOverlap();
        await jump(AHEAD_MS);
        const sinceMs = performance.now();
        await Promise.all([isTold(lease, sinceMs), takeTurns(waits, TTL_MS)]);
        await trial.end(other, 1_000);
      });

      test("jumps ahead while nobody holds: the next acquire is granted at once", async () => {
        await jump(AHEAD_MS);
        // What was valid for a while by the old time is stale by the new one: it is asked again.
        const lease = await trial.acquire(holder, { waitMs: 1_000 });
        expect(lease.remainingMs()).toBeLessThanOrEqual(2_000);
        await lease.renew();
        expect(await lease.release()).toBe(true);
        await trial.end(other, 1_000);
      });

      test("jumps back: the holder keeps it, those who wait are served in turn", async () => {
        const lease = await trial.acquire(holder, { ttlMs: TTL_MS });
        const waits = [1, 2, 3].map(() => trial.acquire(other, { ttlMs: TTL_MS }));
        await trial.waiting(holder, 3);
        await jump(BACK_MS);
        await lease.renew();
        lease.assertHeld();
        expect(await other.mutex(trial.name).tryAcquire()).toBeNull();
        expect(await lease.release()).toBe(true);
        await takeTurns(waits, TTL_MS);
        await trial.turn(holder);
        await trial.turn(other);
      });
    });
  }
});
