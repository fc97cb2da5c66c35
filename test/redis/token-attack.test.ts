/** Invalid numbers from clients, and invalid last tokens in the store. */
import fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Holdfast } from "../../src/api/holdfast.js";
import { redisStore } from "../../src/stores/redis/index.js";
import { RedisStore } from "../../src/stores/redis/redis-store.js";
import { SCRIPTS } from "../../src/stores/redis/script.generated.js";
import { ioredisDriver } from "../../src/stores/redis-client/ioredis.js";
import { checkAsync } from "../fixtures/property.js";
import { expectTokensToRise, tokenAttack } from "../fixtures/token-attack.js";
import { type RedisServer, startRedis } from "../servers/redis.js";

let server: RedisServer;
let client: Redis;

beforeAll(async () => {
  server = await startRedis();
  client = new Redis(server.port);
});

afterAll(async () => {
  client?.disconnect();
  await server?.close();
});

test("tokens rise and are exact for all numbers that clients send", async () => {
  let namespaces = 0;
  const property = fc.asyncProperty(tokenAttack, async (attack) => {
    const options = { namespace: `${namespaces++}`, replicas: 0, replicaTimeoutMs: 0 };
    const arbiter = new RedisStore(ioredisDriver(client), options);
    await expectTokensToRise(attack, (commands) => arbiter.execute("", commands));
  });
  await checkAsync(property, 60);
}, 60_000);

test.each(["9007199254740991", "10800000000000000"])(
  "a last token of %s is refused, and the error gives advice",
  async (token) => {
    const namespace = `last-${token}`;
    const locks = new Holdfast(redisStore({ client, namespace }));
    await locks.mutex("m").run(() => {});
    await client.hset(`{hf:${namespace}}`, "", token);
    await expect(locks.mutex("m").tryAcquire()).rejects.toMatchObject({
      code: "HF_STORE",
      retryable: false,
      message: expect.stringContaining("another namespace"),
    });
    expect(await client.hget(`{hf:${namespace}}`, "")).toBe(token);
    await locks.close();
  },
);

test("a last token far ahead of the clock counts: fences may have seen it", async () => {
  const namespace = "ahead";
  const locks = new Holdfast(redisStore({ client, namespace }));
  await client.hset(`{hf:${namespace}}`, "", "5000000000000000");
  const [first, second] = [await locks.mutex("a").acquire(), await locks.mutex("b").acquire()];
  expect([first.token, second.token]).toEqual([5000000000000001n, 5000000000000002n]);
  await locks.close();
});

test("a user without the right to read the run id is refused before the first write", async () => {
  await server.ask("ACL", "SETUSER", "locks", "on", ">password", "~*", "&*", "+@all", "-info");
  const access = { username: "locks", password: "password", enableReadyCheck: false };
  const user = new Redis({ port: server.port, ...access });
  const register = "{hf:no info}";
  const times = "1000000".padStart(16, "0");
  const request = `X${"4".repeat(32)}${times}0001${times}${times}xowner c {}`;
  await expect(user.eval(SCRIPTS.acquire, 1, register, "l:m", request, "2")).rejects.toThrow("ERR");
  expect(await client.exists(register)).toBe(0);
  user.disconnect();
});
