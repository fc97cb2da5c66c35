/** Holders and waiters are killed and stopped while other processes use the same lock. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type ControlledProcess, startProcess } from "../faults/process.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";
import { Trial } from "./redis-trial.js";

const TTL_MS = 800;
const OFFER_MS = 400;
const ROUNDS = process.env.HOLDFAST_FULL ? 12 : 1;

let server: RedisServer;
let trial: Trial;
let folder: string;
const processes: ControlledProcess[] = [];
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server?.close());
beforeEach(() => {
  trial = new Trial(server);
  folder = mkdtempSync(join(tmpdir(), "holdfast-contenders-"));
});
afterEach(async () => {
  for (const one of processes.splice(0)) await one[Symbol.asyncDispose]();
  await trial.close();
  rmSync(folder, { recursive: true });
});

let files: string[] = [];

async function contender(workers: number, ttlMs: number): Promise<ControlledProcess> {
  const url = `${server.url}?namespace=${trial.namespace}&offerMs=${OFFER_MS}`;
  const file = join(folder, `${files.push("")}`);
  files[files.length - 1] = file;
  const args = [url, trial.name, file, `${workers}`, `${ttlMs}`];
  const started = startProcess(new URL("./redis-contender.mjs", import.meta.url), { args });
  processes.push(started);
  await started.receive((message) => message === "ready");
  return started;
}

/** For each token, the times at which a process trusted its lease. */
function beliefs(): Map<bigint, { first: number; last: number; by: string }> {
  const found = new Map<bigint, { first: number; last: number; by: string }>();
  for (const by of files) {
    // A line that a kill cut off is ignored.
    for (const [, token = "", us] of readFileSync(by, "utf8").matchAll(/^(\d+) (\d+)\n/gm)) {
      const one = found.get(BigInt(token)) ?? { first: Number(us), last: 0, by };
      expect(one.by, "a token belongs to one process").toBe(by);
      found.set(BigInt(token), { ...one, last: Number(us) });
    }
  }
  return found;
}

/** Checks that no two leases overlap and that later ones have higher tokens. */
function expectOneAtATime(): void {
  const ordered = [...beliefs()].sort(([a], [b]) => (a < b ? -1 : 1));
  const violations: string[] = [];
  for (const [at, [token, { first }]] of ordered.entries()) {
    const before = ordered[at - 1];
    if (before && before[1].last >= first) violations.push(`${before[0]} and ${token}`);
  }
  expect(violations).toEqual([]);
}

/** Resolves when other processes have had some turns. */
async function untilMoreTurns(): Promise<void> {
  const before = beliefs().size;
  await waitUntil(() => beliefs().size > before + 10, { what: "more turns", timeoutMs: 10_000 });
}

test("contenders are killed and stopped at any moment", async () => {
  files = [];
  const all = [];
  for (let index = 0; index < 3; index += 1) all.push(await contender(2, TTL_MS));
  const [, second, third] = all as [ControlledProcess, ControlledProcess, ControlledProcess];
  for (let round = 0, victim = all[0]; round < ROUNDS; round += 1) {
    await untilMoreTurns();
    await victim?.kill();
    victim = await contender(2, TTL_MS);
    await second.pause();
    await untilMoreTurns();
    // Its lease and its offers have expired when it continues.
    await sleep(TTL_MS);
    await third.pause();
    second.resume();
    await untilMoreTurns();
    third.resume();
  }
  await untilMoreTurns();
  for (const one of processes) if (one.running) await one.send({ end: true });
  for (const one of processes) await one.exited;
  expectOneAtATime();
  await trial.end(trial.ioredis(server.port), TTL_MS + OFFER_MS + 1_000);
});

test("a stopped process with many waiters costs one offer, a killed one nothing", async () => {
  files = [];
  const locks = trial.ioredis(server.port, { offerMs: OFFER_MS });
  const other = trial.ioredis(server.port, { offerMs: OFFER_MS });
  for (const [fate, most] of [
    ["pause", 2 * OFFER_MS],
    ["kill", OFFER_MS],
  ] as const) {
    const lease = await trial.acquire(locks, { ttlMs: 10_000 });
    const crowd = await contender(50, 10_000);
    await trial.waiting(locks, 50);
    const mine = trial.acquire(other);
    await trial.waiting(locks, 51);
    await crowd[fate]();
    const startMs = performance.now();
    expect(await lease.release()).toBe(true);
    const next = await mine;
    expect(performance.now() - startMs).toBeLessThan(most);
    await next.release();
    await crowd.kill();
    // Its waiters are removed when it has been silent for too long.
    await trial.waiting(locks, 0);
  }
  await trial.end(locks, 1_000);
});
