/** A server that is too old for the scripts is refused before the first write. */
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Holdfast } from "../../src/api/holdfast.js";
import { type HoldfastError, QuorumError, StoreError } from "../../src/errors/index.js";
import { type RedisStoreOptions, redisStore } from "../../src/stores/redis/index.js";
import { redlockStore } from "../../src/stores/redlock/index.js";
import type { RedisServer } from "../servers/redis.js";
import { fetchRedis60, startRedis60 } from "../servers/redis-6-0.js";
import { closeAll, startAll } from "../servers/server-process.js";

type Client = RedisStoreOptions["client"];

const REFUSAL = /This server is Redis 6\.0\.\d+: Redis 6\.2 or newer, or Valkey, is needed\./;

let servers: RedisServer[] = [];
let unavailable = "";
beforeAll(async () => {
  try {
    const programs = await fetchRedis60();
    servers = await startAll(Array.from({ length: 3 }, () => startRedis60(programs)));
  } catch (error) {
    const said = String((error as { stderr?: string }).stderr ?? error);
    if (!said.startsWith("redis-6.0 cannot be had")) throw error;
    unavailable = said.trim();
  }
});
afterAll(() => closeAll(servers));
beforeEach((context) => context.skip(unavailable !== "", unavailable));

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

function ioredis(server: RedisServer | undefined, options: object = {}): Client {
  const client = new Redis({ port: server?.port ?? 0, ...options });
  client.on("error", () => {});
  open.push(() => client.disconnect());
  return client;
}

async function nodeRedis(server: RedisServer | undefined): Promise<Client> {
  const client = createClient({ url: server?.url ?? "" });
  open.push(() => client.destroy());
  return (await client.connect()) as unknown as Client;
}

function locksIn(store: ReturnType<typeof redisStore>): Holdfast {
  const locks = new Holdfast(store);
  open.push(() => locks.close());
  return locks;
}

async function failureOf(promise: Promise<unknown>): Promise<HoldfastError> {
  return await promise.then(
    () => expect.unreachable("it was accepted"),
    (error) => error,
  );
}

describe("Redis 6.0 is refused at the first reply", () => {
  test.each([
    ["ioredis", ioredis],
    ["node-redis", nodeRedis],
  ])("by the redis store on %s", async (_, connect) => {
    const [server] = servers;
    const locks = locksIn(redisStore({ client: await connect(server) }));
    for (const call of [
      () => locks.mutex("m").acquire({ waitMs: 60_000 }),
      () => locks.mutex("m").tryAcquire(),
      () => locks.inspect("m"),
      () => locks.list().next(),
    ]) {
      const error = await failureOf(call());
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({ outcome: "not_applied", retryable: false });
      expect(error.message).toMatch(REFUSAL);
    }
    expect(await server?.ask("DBSIZE")).toBe(0);
  });

  test("for a user without the right to read the version", async () => {
    const [server] = servers;
    await server?.ask("ACL", "SETUSER", "locks", "on", ">password", "~*", "+@all", "-info");
    const user = { username: "locks", password: "password", enableReadyCheck: false };
    const locks = locksIn(redisStore({ client: ioredis(server, user) }));
    const error = await failureOf(locks.mutex("m").acquire());
    expect(error.message).toContain("This server is Redis before 6.2: Redis 6.2 or newer");
    expect(await server?.ask("DBSIZE")).toBe(0);
  });

  test("by the redlock store", async () => {
    const clients = servers.map((server) => ioredis(server));
    const locks = locksIn(redlockStore({ clients, bootstrap: "now" }));
    for (const call of [
      () => locks.mutex("m").acquire({ waitMs: 60_000 }),
      () => locks.inspect("m"),
      () => locks.list().next(),
    ]) {
      const error = await failureOf(call());
      expect(error).toBeInstanceOf(QuorumError);
      expect(error).toMatchObject({ outcome: "not_applied", retryable: false });
      for (const { detail } of (error as QuorumError).votes) expect(detail).toMatch(REFUSAL);
      expect(error.message).toContain("Correct what the nodes refuse: docs/stores/redlock.md");
      expect(error.message).not.toMatch(/nodeTimeoutMs|do not answer/);
    }
    for (const server of servers) expect(await server.ask("DBSIZE")).toBe(0);
  });
});
