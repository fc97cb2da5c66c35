/**
 * Both encodings of the verbs on plain keys pass one trial. Servers without `SET … IFEQ` have only
 * the scripts, so the matrix runs this file on newer ones, too.
 */
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Mutex } from "../../src/compat/redis-semaphore/index.js";
import Redlock from "../../src/compat/redlock/index.js";
import Redlock4 from "../../src/compat/redlock4/index.js";
import {
  EXTEND,
  GIVE,
  type Script,
  scriptRunner,
  TAKE,
} from "../../src/stores/redis-client/plain-keys.js";
import { driverOf } from "../../src/stores/redis-client/supported-clients.js";
import { startRedis } from "../servers/redis.js";

const LONG_MS = 60_000;
const MUTE = { username: "mute", password: "p" };
const ONCE = { retryCount: 0 };

const server = await startRedis();
afterAll(() => server.close());
const hasNative = await server.ask("SET", "none", "?", "IFEQ", "?").then(
  () => true,
  (error: Error) => {
    expect(error.message).toContain("syntax error");
    return false;
  },
);
/** May not run scripts. */
await server.ask(
  "ACL",
  "SETUSER",
  "mute",
  "on",
  ">p",
  "~p:*",
  "-@all",
  "+set",
  "+ping",
  "+hello",
  "+info",
  "+client",
);

beforeEach(() => server.ask("FLUSHALL"));

const noNative = "this server has no SET with IFEQ";

describe.each([
  ["scripts", "ioredis"],
  ["native commands", "ioredis"],
  ["native commands", "node-redis"],
])("by %s of %s", (encoding, library) => {
  const isNative = encoding === "native commands";
  beforeEach((context) => context.skip(isNative && !hasNative, noNative));

  let ask: (script: Script, ...args: string[]) => Promise<unknown>;
  let close: () => unknown;
  beforeAll(async () => {
    const user = isNative ? MUTE : {};
    const ioredis = new Redis({ port: server.port, keyPrefix: "p:", lazyConnect: true, ...user });
    const nodeRedis = createClient({ url: server.url, ...user });
    const client = library === "ioredis" ? ioredis : nodeRedis;
    await client.connect();
    close = () => (library === "ioredis" ? ioredis.disconnect() : nodeRedis.destroy());
    const driver = driverOf(client);
    const run = scriptRunner(driver.send, driver.changes, isNative);
    const key = library === "ioredis" ? "a" : "p:a";
    ask = async (script, ...args) => [await run(script, [key], args)].flat()[0];
  });
  afterAll(() => close?.());

  const timeLeft = async (): Promise<number> => Number(await server.ask("PTTL", "p:a"));

  it("takes a free key once, with its expiry", async () => {
    expect(await ask(TAKE, "mine", `${LONG_MS}`)).toBe(1);
    expect(await server.ask("GET", "p:a")).toBe("mine");
    expect(await timeLeft()).toBeGreaterThan(LONG_MS / 2);
    expect(await ask(TAKE, "mine", "1000"), "its own").toBe(-1);
    expect(await ask(TAKE, "theirs", "1000")).toBe(0);
    expect(await timeLeft(), "refused requests change nothing").toBeGreaterThan(LONG_MS / 2);
  });

  it("extends and deletes its own value alone", async () => {
    await server.ask("SET", "p:a", "mine", "PX", 20_000);
    expect(await ask(EXTEND, "theirs", `${LONG_MS}`, "0")).toBe(0);
    expect(await timeLeft()).toBeLessThan(LONG_MS / 2);
    expect(await ask(EXTEND, "mine", `${LONG_MS}`, "0")).toBe(1);
    expect(await timeLeft()).toBeGreaterThan(LONG_MS / 2);
    expect(await ask(GIVE, "theirs")).toBe(0);
    expect(await server.ask("GET", "p:a")).toBe("mine");
    expect(await ask(GIVE, "mine")).toBe(1);
    expect(await server.ask("EXISTS", "p:a")).toBe(0);
  });

  it("creates nothing for a key that has gone", async () => {
    expect(await ask(EXTEND, "mine", `${LONG_MS}`, "0")).toBe(0);
    expect(await ask(GIVE, "mine")).toBe(0);
    expect(await server.ask("EXISTS", "p:a")).toBe(0);
  });

  it("leaves a key of another type alone", async () => {
    await server.ask("RPUSH", "p:a", "mine");
    expect(await ask(TAKE, "mine", "1000")).toBe(0);
    expect(await ask(EXTEND, "mine", "1000", "0")).toBe(0);
    expect(await ask(GIVE, "mine")).toBe(0);
    expect(await server.ask("LRANGE", "p:a", 0, -1)).toEqual(["mine"]);
  });
});

describe("a user who may not run scripts", () => {
  let client: Redis;
  beforeAll(() => {
    client = new Redis({ port: server.port, keyPrefix: "p:", ...MUTE });
  });
  afterAll(() => client?.disconnect());

  it.runIf(hasNative)("has the locks of all replaced packages", async () => {
    const first = await new Redlock([client], ONCE).acquire(["a"], LONG_MS);
    await expect(new Redlock4([client], ONCE).lock("a", LONG_MS)).rejects.toThrow();
    await (await first.extend(LONG_MS)).release();
    const second = await new Redlock4([client], ONCE).lock("a", LONG_MS);
    await second.unlock();
    const mutex = new Mutex(client, "a");
    await mutex.acquire();
    expect(await server.ask("GET", "p:mutex:a")).toBe(mutex.identifier);
    await mutex.release();
    expect(await server.ask("EXISTS", "p:a", "p:mutex:a")).toBe(0);
  });

  it.runIf(!hasNative)("is refused by an older server, which names the right", async () => {
    const redlock = new Redlock([client], ONCE);
    const seen: string[] = [];
    redlock.on("error", (error: Error) => seen.push(error.message));
    await expect(redlock.acquire(["a"], LONG_MS)).rejects.toThrow();
    expect(seen.join()).toMatch(/'evalsha'/);
    expect(await server.ask("EXISTS", "p:a")).toBe(0);
  });
});

it.runIf(hasNative)("a user who may run scripts has its keys deleted natively", async () => {
  const client = new Redis(server.port);
  const lock = await new Redlock([client], ONCE).acquire(["a"], LONG_MS);
  await server.ask("CONFIG", "RESETSTAT");
  await lock.release();
  client.disconnect();
  const stats = await server.info("commandstats");
  expect(stats.cmdstat_set).toMatch(/^calls=2,/);
  expect(stats.cmdstat_evalsha).toBeUndefined();
  expect(await server.ask("EXISTS", "a")).toBe(0);
});
