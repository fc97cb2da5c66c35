/** Data that Holdfast did not write: the redis store refuses it, names it and keeps it. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Holdfast } from "../../src/api/holdfast.js";
import { channels } from "../../src/events/events.js";
import { watchHost } from "../fixtures/host.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";
import { libraries } from "./clients.js";
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

describe.each(libraries)("by %s", (library) => {
  test("a foreign message is ignored and reported", async () => {
    const heard: unknown[] = [];
    const onEvent = (event: unknown): void => void heard.push(event);
    subscribe(channels.foreign, onEvent);
    const locks = await trial.open(library, server.port);
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
    const next = (await trial.open(library, server.port))
      .mutex("held")
      .acquire({ fairness: "strict" });
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
  ["a token that is no number", `H${"1".repeat(32)}zzzz${"0".repeat(64)}xo c {}`],
  ["half a holder", "H0000000000000001"],
  ["a holder without an owner, long over", `H${"1".padStart(100, "0")}x`],
  ["a holder that may be anything", `H${"1".padStart(100, "0")}no c {}`],
  ["a holder of another layout", `h${"1".padStart(68, "0")}xo c 1 1 {}`],
  ["a flag that is none", "=zz"],
  ["bytes", "\u0000\u0001\ufffd"],
])("a field of the register with %s ends calls on its name only", async (_, text) => {
  const locks = trial.ioredis(server.port);
  await server.ask("HSET", register, "l:spoilt", text);
  const where = `field l:spoilt of ${register}`;
  const [spoilt, whole] = [locks.mutex("spoilt"), locks.mutex("whole")];
  // In one batch with another command.
  const [, lease] = await Promise.all([expectForeign(spoilt.tryAcquire(), where), whole.acquire()]);
  await Promise.all([expectForeign(spoilt.acquire(), where), lease.release()]);
  await expectForeign(locks.inspect("spoilt"), where);
  await expectForeign(locks.revoke("spoilt", { token: 1n, reason: "stuck" }), where);
  expect(await server.ask("HGET", register, "l:spoilt")).toBe(text);
  await server.ask("HDEL", register, "l:spoilt");
  await (await spoilt.acquire()).release();
});

test("a name that another version has in use is refused, and the error says so", async () => {
  const locks = trial.ioredis(server.port);
  const text = `f${"1".padStart(36, "0")}xowner client 1 1 {}`;
  await server.ask("HSET", register, "l:m", text);
  await expectForeign(locks.mutex("m").acquire(), "which another version of Holdfast wrote");
  expect(await server.ask("HGET", register, "l:m")).toBe(text);
});

test("unreadable fields harm no other name, also when read often", async () => {
  const locks = trial.ioredis(server.port);
  const texts = ["", "x", `H${"z".repeat(40)}`, "H", "O", "Fx", "9".repeat(400), "\u0000"];
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

test("wrong counts do not keep the server busy", async () => {
  const locks = trial.ioredis(server.port);
  const others = trial.ioredis(server.port);
  const short = { ttlMs: 4_000, waitMs: 4_000, fairness: "strict" } as const;
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
  // The counts say one waiter and a last place far away; no client is subscribed.
  await server.ask("HSET", key, "k", `${sums.slice(0, 48)} 1 ${"9".repeat(12)} 0`);
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
