/** Holders and waiters are killed and stopped while other processes use the same lock. */

import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { ControlledProcess } from "../faults/process.js";
import { isFull } from "../fixtures/depth.js";
import { Stopwatch } from "../fixtures/stopwatch.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { Contenders } from "../stores/contenders.js";
import { Trial } from "./trial.js";

const TTL_MS = 800;
const OFFER_MS = 400;
const ROUNDS = isFull ? 12 : 1;

let server: RedisServer;
let trial: Trial;
let contenders: Contenders;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server?.close());
beforeEach(() => {
  trial = new Trial(server);
  const url = `${server.url}?namespace=${trial.namespace}&offerMs=${OFFER_MS}`;
  contenders = new Contenders(url, trial.name);
});
afterEach(async () => {
  await contenders[Symbol.asyncDispose]();
  await trial.close();
});

test("contenders are killed and stopped at any moment", async () => {
  const all = [];
  for (let index = 0; index < 3; index += 1) all.push(await contenders.start(2, TTL_MS));
  const [, second, third] = all as [ControlledProcess, ControlledProcess, ControlledProcess];
  for (let round = 0, victim = all[0]; round < ROUNDS; round += 1) {
    await contenders.untilMoreTurns();
    await victim?.kill();
    victim = await contenders.start(2, TTL_MS);
    await second.pause();
    await contenders.untilMoreTurns();
    // Its lease and its offers have expired when it continues.
    await sleep(TTL_MS);
    await third.pause();
    second.resume();
    await contenders.untilMoreTurns();
    third.resume();
  }
  await contenders.untilMoreTurns();
  await contenders.end();
  contenders.expectOneAtATime();
  await trial.end(trial.ioredis(server.port), TTL_MS + OFFER_MS + 1_000);
});

test("a stopped process with many waiters costs one offer, a killed one nothing", async () => {
  const locks = trial.ioredis(server.port, { offerMs: OFFER_MS });
  const other = trial.ioredis(server.port, { offerMs: OFFER_MS });
  for (const [fate, most] of [
    ["pause", 2 * OFFER_MS],
    ["kill", OFFER_MS],
  ] as const) {
    const lease = await trial.acquire(locks, { ttlMs: 10_000 });
    const crowd = await contenders.start(50, 10_000);
    await trial.waiting(locks, 50);
    const mine = trial.acquire(other);
    await trial.waiting(locks, 51);
    await crowd[fate]();
    const stopwatch = new Stopwatch();
    expect(await lease.release()).toBe(true);
    const next = await mine;
    stopwatch.expectLessThan(most);
    await next.release();
    await crowd.kill();
    // Its waiters are removed when it has been silent for too long.
    await trial.waiting(locks, 0);
  }
  await trial.end(locks, 1_000);
});
