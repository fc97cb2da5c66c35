/** Data that Holdfast did not write: the redis store refuses it, names it and keeps it. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { HoldfastError, StoreError } from "../../src/errors.js";
import { channels } from "../../src/events.js";
import type { Holdfast } from "../../src/holdfast.js";
import type { Lease } from "../../src/lease/lease.js";
import { seededGarbage } from "../fixtures/garbage.js";
import { watchHost } from "../fixtures/host.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";
import { Trial } from "./redis-trial.js";

const FOREIGN = "data that is not ours";
const libraries = ["ioredis", "node-redis"] as const;

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

const open = (library: (typeof libraries)[number]): Promise<Holdfast> | Holdfast =>
  library === "ioredis" ? trial.ioredis(server.port) : trial.nodeRedis(server.port);

/** Checks that the call is refused and that the message names the place. */
async function refused(work: Promise<unknown>, where: string): Promise<void> {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StoreError);
  expect(error).toMatchObject({ code: "HF_STORE", retryable: false });
  expect(String(error)).toContain(FOREIGN);
  expect(String(error)).toContain(where);
}

describe.each(libraries)("by %s", (library) => {
  test("a foreign message is ignored and reported", async () => {
    const heard: unknown[] = [];
    const onEvent = (event: unknown): void => void heard.push(event);
    subscribe(channels.foreign, onEvent);
    const locks = await open(library);
    const lease = await locks.mutex("held").acquire();
    const found = (): Promise<unknown> => server.ask("PUBSUB", "CHANNELS", `${register}*`);
    await waitUntil(async () => ((await found()) as string[]).length > 0, {
      what: "the client listens",
    });
    const [channel = ""] = (await found()) as string[];
    const messages = ["x", "", "m{}", "v[null]", "v[]", "go x 1 1 1 l:held", "\u0000", "m[1]"];
    for (const message of messages) await server.ask("PUBLISH", channel, message);
    await waitUntil(() => heard.length === messages.length, { what: "all are reported" });
    unsubscribe(channels.foreign, onEvent);
    expect(heard[0]).toMatchObject({ store: "redis", where: "a message to this client" });
    expect(lease.state).toBe("held");
    // The client still gets its own messages.
    const next = (await open(library)).mutex("held").acquire({ fairness: "strict" });
    await waitUntil(async () => (await locks.inspect("held")).waiters.length === 1, {
      what: "a waiter",
    });
    await lease.release();
    await (await next).release();
  });
});

test.each([
  ["no form", "garbage"],
  ["nothing", ""],
  ["a token that is no number", `+${"1".repeat(16)}zzzz${"0".repeat(28)}xo c 1 1 {}`],
  ["half a holder", "f0000000000000001"],
  ["a holder without an owner, long over", `f${"1".padStart(32, "0")}x`],
  ["a holder that may be anything", `+${"1".padStart(48, "0")}no c 1 1 {}`],
  ["a place that is none", "=zz"],
  ["bytes", "\u0000\u0001\ufffd"],
])("a field of the register with %s ends calls on its name only", async (_, text) => {
  const locks = trial.ioredis(server.port);
  await server.ask("HSET", register, "l:spoilt", text);
  const where = `field l:spoilt of ${register}`;
  const [spoilt, whole] = [locks.mutex("spoilt"), locks.mutex("whole")];
  // In one batch with another command.
  const [, lease] = await Promise.all([refused(spoilt.tryAcquire(), where), whole.acquire()]);
  await Promise.all([refused(spoilt.acquire(), where), lease.release()]);
  await refused(locks.inspect("spoilt"), where);
  await refused(locks.revoke("spoilt", { token: 1n, reason: "stuck" }), where);
  expect(await server.ask("HGET", register, "l:spoilt")).toBe(text);
  await server.ask("HDEL", register, "l:spoilt");
  await (await spoilt.acquire()).release();
});

test("unreadable fields harm no other name, also when read often", async () => {
  const locks = trial.ioredis(server.port);
  const texts = ["", "x", `f${"z".repeat(40)}`, "h", "=", "=x", "9".repeat(400), "\u0000"];
  for (const [at, text] of texts.entries()) await server.ask("HSET", register, `l:s${at}`, text);
  for (let pair = 0; pair < 600; pair += 1) {
    const lease = await locks.mutex("whole").acquire({ fairness: "strict" });
    expect(await lease.release()).toBe(true);
  }
  for (const [at, text] of texts.entries()) {
    expect(await server.ask("HGET", register, `l:s${at}`)).toBe(text);
  }
});

test("an unreadable last token is ignored: the next one comes from the clock", async () => {
  const locks = trial.ioredis(server.port);
  for (const text of ["x", "", "-5", "1e3"]) {
    const before = await locks.mutex("a").acquire();
    await before.release();
    await server.ask("HSET", register, "", text);
    const lease = await locks.mutex("a").acquire();
    expect(lease.token).toBeGreaterThan(before.token);
    await lease.release();
  }
});

test("a list skips and reports unreadable names", async () => {
  const heard: unknown[] = [];
  const onEvent = (event: unknown): void => void heard.push(event);
  subscribe(channels.foreign, onEvent);
  const locks = trial.ioredis(server.port);
  const lease = await locks.mutex("whole").acquire();
  await server.ask("HSET", register, "l:spoilt", "garbage");
  const names: string[] = [];
  for await (const { name } of locks.list()) names.push(name);
  unsubscribe(channels.foreign, onEvent);
  expect(names).toEqual(["whole"]);
  expect(heard).toMatchObject([{ store: "redis", where: expect.stringContaining("l:spoilt") }]);
  await lease.release();
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
      .acquire({ waitMs: 500, fairness: "strict" });
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
    await refused(locks.mutex("m").acquire(), register);
    const before = await server.ask("DUMP", register);
    await refused(locks.mutex("m").tryAcquire(), register);
    expect(await server.ask("DUMP", register)).toEqual(before);
    await server.ask("DEL", register);
    await (await locks.mutex("m").acquire()).release();
  });

  test.each(Object.keys(applications))("the hash of a name, a %s", async (type) => {
    const locks = trial.ioredis(server.port);
    const key = `${register}:l:m`;
    await put(type, key);
    const before = await server.ask("DUMP", key);
    await refused(
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
    await refused(
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
    await refused(locks.semaphore("m", 2).acquire(), key);
    expect(await server.ask("DUMP", key)).toEqual(before);
    await server.ask("DEL", key);
    await (await locks.semaphore("m", 2).acquire()).release();
  });
});

test("wrong counts do not keep the server busy", { timeout: 20_000 }, async () => {
  const locks = trial.ioredis(server.port);
  const others = trial.ioredis(server.port);
  const short = { ttlMs: 500, waitMs: 400, fairness: "strict" } as const;
  const key = `${register}:l:m`;
  const held = await locks.semaphore("m", 2).acquire({ ...short, weight: 2 });
  const waits = [1, 2, 3].map(() =>
    others
      .semaphore("m", 2)
      .acquire(short)
      .catch(() => null),
  );
  await waitUntil(async () => (await locks.inspect("m")).waiters.length === 3, {
    what: "three waiters",
  });
  const sums = String(await server.ask("HGET", key, "k"));
  const one = "1".padStart(16, "0");
  const far = "9".repeat(15).padStart(16, "0");
  // The counts say one waiter and a last place far away; no client is subscribed.
  await server.ask("HSET", key, "k", sums.slice(0, 33) + one + far + sums.slice(65));
  await server.ask("CLIENT", "KILL", "TYPE", "pubsub");
  await held.release();
  await Promise.all(waits);
  await locks.inspect("m");
  expect(await server.ask("PING")).toBe("PONG");
});

test("a name whose register was lost starts again without its earlier waiters", async () => {
  const [locks, others, third] = [1, 2, 3].map(() => trial.ioredis(server.port)) as [
    Holdfast,
    Holdfast,
    Holdfast,
  ];
  const waiters = async (): Promise<number> => (await locks.inspect("m")).waiters.length;
  const ask = (who: Holdfast): Promise<unknown> =>
    who
      .mutex("m")
      .acquire({ waitMs: 300, fairness: "strict" })
      .then(
        (lease) => lease.release(),
        () => null,
      );
  await locks.mutex("m").acquire();
  const before = [ask(others), ask(others)];
  await waitUntil(async () => (await waiters()) === 2, { what: "two waiters" });
  await server.ask("DEL", register);
  // Waiters may notice the loss and find the lock free.
  await Promise.all(before);
  await third.mutex("m").acquire();
  const after = ask(others);
  await waitUntil(async () => (await waiters()) > 0, { what: "a waiter" });
  expect(await waiters()).toBe(1);
  await after;
});

describe("garbage at random", () => {
  const isFull = Boolean(process.env.HOLDFAST_FULL);
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
    const held = garbage.chance(0.8) ? await lock.acquire(short) : null;
    const waiting = garbage.chance(0.7)
      ? [settle(other.acquire(short)), settle(other.acquire(short))]
      : [];
    if (waiting.length > 0 && held) {
      await waitUntil(async () => (await locks.inspect(name)).waiters.length > 0, {
        what: "a waiter",
      }).catch(() => {});
    }
    for (let times = garbage.whole(1, 3); times > 0; times -= 1) await damage(`l:${name}`);
    const startMs = performance.now();
    await Promise.all([
      ...waiting,
      settle(lock.tryAcquire(short)),
      settle(other.acquire(short)),
      settle(locks.inspect(name)),
      settle(others.revoke(name, { token: held?.token ?? 1n, reason: "stuck" })),
      held && settle(held.renew()),
    ]);
    if (held) await settle(held.release());
    expect(performance.now() - startMs).toBeLessThan(10_000);
    await clear(`l:${name}`);
    await (await lock.acquire({ ...short, waitMs: 5_000, storeTimeoutMs: 5_000 })).release();
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
