/**
 * Jumps of the server's wall clock under a holder and its waiters. A jump ahead frees the lock
 * early: two clients may trust their leases until the first is told. A jump back keeps the lock
 * longer. In both cases tokens rise, all waiters are served, and no client trusts a lease past its
 * ttl.
 */
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Holdfast } from "../../src/api/holdfast.js";
import type { Lease } from "../../src/lease/lease.js";
import { Stopwatch } from "../fixtures/stopwatch.js";
import { makeClocks } from "../servers/clock-shift.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";
import { ioredis, libraries } from "./clients.js";
import { Trial } from "./trial.js";

const TTL_MS = 1_500;
/** A renewal is sent after each third of the ttl, and its reply takes a moment. */
const NOTICE_MS = TTL_MS / 3 + 500;
const AHEAD_MS = 60_000;
const BACK_MS = -120_000;

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

  /** Shifts the clock by `byMs` from its present time. */
  async function jump(byMs: number): Promise<void> {
    shiftMs += byMs;
    await clock?.shift(shiftMs, server);
  }

  async function isTold(lease: Lease): Promise<void> {
    const stopwatch = new Stopwatch();
    await waitUntil(() => lease.signal.aborted, { what: "the holder is told of the loss" });
    stopwatch.expectLessThan(NOTICE_MS, "a renewal tells the loss");
    expect(["missing", "replaced", "expired"]).toContain(lease.signal.reason.reason);
    expect(await lease.release()).toBe(false);
  }

  /** Checks that each waiter acquires, trusts its lease no longer than its ttl, and releases. */
  async function takeTurns(waits: readonly Promise<Lease>[], ttlMs: number): Promise<void> {
    for (const wait of waits) {
      const lease = await wait;
      expect(lease.remainingMs()).toBeLessThanOrEqual(ttlMs);
      lease.assertHeld();
      expect(await lease.release()).toBe(true);
    }
  }

  test("jumps back: the lease of a dead client stays until the clock is corrected", async () => {
    const { client, close } = ioredis(new Redis({ port: server.port, retryStrategy: () => null }));
    const dying = trial.by({ client, close });
    const other = trial.ioredis(server.port);
    await trial.turn(other);
    const lease = await trial.acquire(dying, { ttlMs: TTL_MS, renew: false });
    await jump(BACK_MS);
    close();
    await waitUntil(() => lease.state === "lost", { what: "the deadline of the lease" });
    const waiting = trial.acquire(other);
    await trial.waiting(other, 1);
    const [held] = (await other.inspect(trial.name)).holders;
    expect(held?.token).toBe(lease.token);
    expect(held?.remainingMs).toBeGreaterThan(-BACK_MS - TTL_MS);
    await jump(-BACK_MS);
    await takeTurns([waiting], 10_000);
    await trial.end(other, 1_000);
  });

  for (const library of libraries) {
    describe(library, () => {
      let holder: Holdfast;
      let other: Holdfast;
      beforeEach(async () => {
        holder = await trial.open(library, server.port);
        other = await trial.open(library, server.port);
        // Both clients know the server's time and are subscribed.
        await trial.turn(holder);
        await trial.turn(other);
      });

      test("jumps ahead: the next renewal reports the loss, and tokens rise", async () => {
        const lease = await trial.acquire(holder, { ttlMs: TTL_MS });
        lease.signal.throwIfAborted();
        const waits = [1, 2, 3].map(() => trial.acquire(other, { ttlMs: TTL_MS }));
        await trial.waiting(holder, 3);
        trial.expectOverlap();
        await jump(AHEAD_MS);
        await Promise.all([isTold(lease), takeTurns(waits, TTL_MS)]);
        await trial.end(other, 1_000);
      });

      test("jumps ahead without a holder: the next acquire is granted at once", async () => {
        await jump(AHEAD_MS);
        // The cached time of the server is stale, so the client asks again.
        const lease = await trial.acquire(holder, { waitMs: 20_000 });
        expect(lease.remainingMs()).toBeLessThanOrEqual(10_000);
        await lease.renew();
        expect(await lease.release()).toBe(true);
        await trial.end(other, 1_000);
      });

      test("jumps back: the holder keeps the lock, and waiters acquire in order", async () => {
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
