/** Random garbage in the data of the redis store. HOLDFAST_SEED repeats a run. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Holdfast } from "../../src/api/holdfast.js";
import { HoldfastError } from "../../src/errors/index.js";
import type { Lease } from "../../src/lease/lease.js";
import { isFull } from "../fixtures/depth.js";
import { seededGarbage } from "../fixtures/garbage.js";
import { watchHost } from "../fixtures/host.js";
import { Stopwatch } from "../fixtures/stopwatch.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";
import { Trial } from "./trial.js";

let server: RedisServer;
let trial: Trial;
let register: string;
let host: ReturnType<typeof watchHost>;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server?.close());
beforeEach(() => {
  trial = new Trial(server);
  register = `{hf:${trial.namespace}}`;
  host = watchHost();
});
afterEach(async () => {
  await trial.close();
  expect(await host.end()).toEqual([]);
});

describe("garbage at random", () => {
  const garbage = seededGarbage();
  const rounds = isFull ? 300 : 25;

  test(`seed ${garbage.seed}`, { timeout: isFull ? 600_000 : 120_000 }, async () => {
    const locks = trial.ioredis(server.port, { offerMs: 200 });
    const others = trial.ioredis(server.port, { offerMs: 200 });
    let isOver = false;
    let turns = 0;
    const work = (async () => {
      for (; !isOver; turns += 1) {
        const names = ["a", "b", "c"].map((name) => locks.mutex(name));
        const leases = await Promise.all(names.map((lock) => lock.acquire()));
        const shared = await others.semaphore("d", 2).acquire();
        for (const lease of [...leases, shared]) expect(await lease.release()).toBe(true);
      }
    })();
    work.catch(() => {});
    for (let round = 0; round < rounds; round += 1) await damageOnce(locks, others, round);
    isOver = true;
    await work;
    expect(turns).toBeGreaterThan(rounds);
  });

  /** Puts a name into some state, damages one thing, makes calls, and removes the name. */
  async function damageOnce(locks: Holdfast, others: Holdfast, round: number): Promise<void> {
    const name = `spoilt-${round}`;
    const short = { ttlMs: 400, waitMs: 300, storeTimeoutMs: 1_000, fairness: "strict" } as const;
    const patient = { waitMs: 30_000, storeTimeoutMs: 30_000 };
    const lock = garbage.pick([
      () => locks.mutex(name),
      () => locks.semaphore(name, 2),
      () => locks.readWrite(name).read,
    ])();
    const other = garbage.pick([
      () => others.mutex(name),
      () => others.semaphore(name, 1),
      () => others.readWrite(name).write,
    ])();
    const settle = (work: Promise<unknown>): Promise<unknown> =>
      work.then(
        (value) => (isLease(value) ? value.release() : value),
        (error: unknown) => {
          if (!(error instanceof HoldfastError)) throw error;
          return error;
        },
      );
    const held = garbage.chance(0.8) ? await lock.acquire({ ...short, ...patient }) : null;
    const waiting = garbage.chance(0.7)
      ? [settle(other.acquire(short)), settle(other.acquire(short))]
      : [];
    if (waiting.length > 0 && held) {
      await waitUntil(async () => (await locks.inspect(name)).waiters.length > 0, {
        what: "a waiter",
      }).catch(() => {});
    }
    for (let times = garbage.whole(1, 3); times > 0; times -= 1) await damage(`l:${name}`);
    const stopwatch = new Stopwatch();
    await Promise.all([
      ...waiting,
      settle(lock.tryAcquire(short)),
      settle(other.acquire(short)),
      settle(locks.inspect(name)),
      settle(others.revoke(name, { token: held?.token ?? 1n, reason: "stuck" })),
      held && settle(held.renew()),
    ]);
    if (held) await settle(held.release());
    stopwatch.expectLessThan(10_000);
    await clear(`l:${name}`);
    await (await lock.acquire({ ...short, ...patient })).release();
  }

  async function keysOf(name: string): Promise<string[]> {
    const keys = (await server.ask("KEYS", `${register}*`)) as string[];
    return keys.filter((key) => key.endsWith(`:${name}`));
  }

  /** Damages the field in the register, a key, or a part of a key. */
  async function damage(name: string): Promise<void> {
    const keys = await keysOf(name);
    const key = garbage.pick([register, ...keys, ...keys]);
    if (key !== register && garbage.chance(0.1)) {
      await server.ask("DEL", key);
      if (garbage.chance(0.8)) await server.ask("SET", key, garbage.text(""));
      return;
    }
    const type = await server.ask("TYPE", key);
    if (key === register) {
      const before = await server.ask("HGET", register, name);
      await server.ask("HSET", register, name, garbage.text(String(before ?? "")));
    } else if (type === "hash") {
      const fields = (await server.ask("HKEYS", key)) as string[];
      const field = garbage.pick([...fields, garbage.text("w")]);
      if (garbage.chance(0.2)) await server.ask("HDEL", key, field);
      else {
        const before = await server.ask("HGET", key, field);
        await server.ask("HSET", key, field, garbage.text(String(before ?? "")));
      }
    } else if (type === "zset") {
      const members = (await server.ask("ZRANGE", key, 0, -1)) as string[];
      const score = garbage.pick(["inf", "-inf", "0", "1e300", "-5", "1.5"]);
      const member = garbage.pick([...members, garbage.text("member")]);
      if (garbage.chance(0.3)) await server.ask("ZREM", key, member);
      else await server.ask("ZADD", key, score, member);
    } else if (type === "string") await server.ask("SET", key, garbage.text("1"));
  }

  async function clear(name: string): Promise<void> {
    await server.ask("HDEL", register, name);
    for (const key of await keysOf(name)) await server.ask("DEL", key);
  }
});

function isLease(value: unknown): value is Lease {
  return typeof value === "object" && value !== null && "release" in value;
}
