/** Keys of another program: the redis store refuses them, names them and keeps them. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Holdfast } from "../../src/api/holdfast.js";
import { watchHost } from "../fixtures/host.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { expectForeign, Trial } from "./trial.js";

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

/** Application data of each type. */
const applications: Record<string, readonly string[]> = {
  string: ["SET", "KEY", "theirs"],
  list: ["RPUSH", "KEY", "theirs"],
  set: ["SADD", "KEY", "theirs"],
  hash: ["HSET", "KEY", "k", "theirs"],
  zset: ["ZADD", "KEY", "1", "theirs"],
};

describe("a key of another program is refused by name and stays unchanged", () => {
  const put = (type: string, key: string): Promise<unknown> =>
    server.ask(...(applications[type] ?? []).map((word) => (word === "KEY" ? key : word)));

  /** A holder and a waiter: the name needs more than its field in the register. */
  async function contend(locks: Holdfast): Promise<unknown> {
    const held = await locks.mutex("m").acquire({ ttlMs: 5_000 });
    const asked = trial
      .ioredis(server.port)
      .mutex("m")
      .acquire({ waitMs: 900, fairness: "strict" });
    const outcome = await asked.then(
      (lease) => lease.release(),
      (error: unknown) => error,
    );
    await held.release();
    return outcome;
  }

  test.each(["string", "list", "set", "zset"])("the register, a %s", async (type) => {
    const locks = trial.ioredis(server.port);
    await put(type, register);
    await expectForeign(locks.mutex("m").acquire(), register);
    const before = await server.ask("DUMP", register);
    await expectForeign(locks.mutex("m").tryAcquire(), register);
    expect(await server.ask("DUMP", register)).toEqual(before);
    await server.ask("DEL", register);
    await (await locks.mutex("m").acquire()).release();
  });

  test.each(Object.keys(applications))("the hash of a name, a %s", async (type) => {
    const locks = trial.ioredis(server.port);
    const key = `${register}:l:m`;
    await put(type, key);
    const before = await server.ask("DUMP", key);
    await expectForeign(
      contend(locks).then((error) => Promise.reject(error)),
      type === "hash" ? key : `${key} (a ${type})`,
    );
    expect(await server.ask("DUMP", key)).toEqual(before);
    await server.ask("DEL", key);
    expect(await contend(locks)).toMatchObject({ code: "HF_ACQUIRE_TIMEOUT" });
  });

  test.each(Object.keys(applications))("the waiting clients of a name, a %s", async (type) => {
    const locks = trial.ioredis(server.port);
    const key = `${register}g:l:m`;
    await put(type, key);
    const before = await server.ask("DUMP", key);
    await expectForeign(
      contend(locks).then((error) => Promise.reject(error)),
      key,
    );
    expect(await server.ask("DUMP", key)).toEqual(before);
  });

  test.each(Object.keys(applications))("the shared holders of a name, a %s", async (type) => {
    const locks = trial.ioredis(server.port);
    const key = `${register}e:l:m`;
    await put(type, key);
    const before = await server.ask("DUMP", key);
    await expectForeign(locks.semaphore("m", 2).acquire(), key);
    expect(await server.ask("DUMP", key)).toEqual(before);
    await server.ask("DEL", key);
    await (await locks.semaphore("m", 2).acquire()).release();
  });
});
