/** A script that fails after a write: its outcome is unknown. */
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { Holdfast } from "../../src/api/holdfast.js";
import type { Store } from "../../src/contract/store.js";
import { redisStore } from "../../src/stores/redis/index.js";
import { redlockStore } from "../../src/stores/redlock/index.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { closeAll, startAll } from "../servers/server-process.js";

const NODES = 3;

let servers: RedisServer[];
beforeAll(async () => {
  servers = await startAll(Array.from({ length: NODES }, () => startRedis()));
});
afterAll(() => closeAll(servers ?? []));

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

function connect(server: RedisServer, options: object = {}): Redis {
  const client = new Redis({ port: server.port, ...options });
  client.on("error", () => {});
  open.push(() => client.disconnect());
  return client;
}

/** A client whose user may run every command except one. */
async function without(command: string, server: RedisServer): Promise<Redis> {
  const rights = ["~*", "&*", "+@all", `-${command}`];
  await server.ask("ACL", "SETUSER", "locks", "reset", "on", ">password", ...rights);
  return connect(server, { username: "locks", password: "password" });
}

function locksIn(store: Store): Holdfast {
  const locks = new Holdfast(store);
  open.push(() => locks.close());
  return locks;
}

test("in the redis store", async () => {
  const [server] = servers as [RedisServer];
  const client = await without("pexpireat", server);
  const locks = locksIn(redisStore({ client }));
  // The script writes the hash of a shared holder, then PEXPIREAT is refused.
  const error = await failureOf(locks.readWrite("m").read.acquire());
  expect(error).toMatchObject({ code: "HF_STORE", outcome: "unknown", retryable: false });
  expect(await server.ask("EXISTS", "{hf:}:l:m")).toBe(1);
});

test("in the redlock store", async () => {
  const holder = locksIn(
    redlockStore({ clients: servers.map((server) => connect(server)), bootstrap: "now" }),
  );
  await using _lease = await holder.mutex("m").acquire();
  // The script adds a waiter, then PEXPIREAT of the list is refused.
  const clients = await Promise.all(servers.map((server) => without("pexpire", server)));
  const error = await failureOf(locksIn(redlockStore({ clients })).mutex("m").acquire());
  expect(error).toMatchObject({ code: "HF_STORE_QUORUM", outcome: "unknown", retryable: false });
  expect(String(error)).toContain("docs/stores/redlock.md has the versions and the rights");
});

function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => expect.unreachable("it succeeded"),
    (error) => error,
  );
}
