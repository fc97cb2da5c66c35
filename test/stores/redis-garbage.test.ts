/** Data that Holdfast did not write: the redis store refuses it, names it and keeps it. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { StoreError } from "../../src/errors.js";
import { channels } from "../../src/events.js";
import type { Holdfast } from "../../src/holdfast.js";
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
  ["a token that is no number", `+${"1".repeat(16)}zzzz${"0".repeat(32)}xo c 1 1 {}`],
  ["half a holder", "f0000000000000001"],
  ["a holder without an owner, long over", `f${"1".padStart(36, "0")}x`],
  ["a holder that may be anything", `+${"1".padStart(52, "0")}no c 1 1 {}`],
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
