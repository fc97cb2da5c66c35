/** Clients with prefixes and reply types, and clients that are closed too early. */
import { execFile } from "node:child_process";
import { channel } from "node:diagnostics_channel";
import { inspect, promisify } from "node:util";
import { Redis } from "ioredis";
import { Redis as Valkey } from "iovalkey";
import { createClient, RESP_TYPES } from "redis";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { connect } from "../../src/api/connect.js";
import { StoreError } from "../../src/errors/index.js";
import { channels } from "../../src/events/events.js";
import { Stopwatch } from "../fixtures/stopwatch.js";
import { onFreePorts } from "../servers/free-port.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { ioredis, nodeRedis, type Opened } from "./clients.js";
import { Trial } from "./trial.js";

let server: RedisServer;
let trial: Trial;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server?.close());
beforeEach(() => {
  trial = new Trial(server);
});
afterEach(() => trial.close());

const byIoredis = (options: object = {}): Opened =>
  ioredis(new Redis({ port: server.port, ...options }));

const byNodeRedis = (options: object = {}): Promise<Opened> =>
  nodeRedis(createClient({ url: server.url, ...options }));

test("both libraries use the same key prefix and exclude each other", async () => {
  const keyPrefix = "my app:";
  const locks = trial.by(await byNodeRedis({ keyPrefix }));
  const others = trial.by(byIoredis({ keyPrefix }));
  const apart = trial.by(await byNodeRedis());
  const lease = await locks.mutex("prefixed").acquire();
  expect(await others.mutex("prefixed").tryAcquire()).toBeNull();
  expect(await apart.mutex("prefixed").tryAcquire()).not.toBeNull();
  const names = [];
  for await (const view of locks.list()) names.push(view.name);
  expect(names).toEqual(["prefixed"]);
  const waiting = others.mutex("prefixed").acquire();
  await expect.poll(async () => (await locks.inspect("prefixed")).waiters.length).toBe(1);
  expect(await lease.release()).toBe(true);
  await (await waiting).release();
});

test("iovalkey and ioredis exclude and wake each other, and each hears of a loss", async () => {
  const locks = trial.by(ioredis(new Valkey({ port: server.port })));
  const others = trial.by(byIoredis());
  for (const [one, other] of [[locks, others] as const, [others, locks] as const]) {
    const lease = await one.mutex("shared").acquire();
    expect(await other.mutex("shared").tryAcquire()).toBeNull();
    // Far longer than this test may take: the waiter is woken, and does not ask by itself.
    const waiting = other.mutex("shared").acquire({ ttlMs: 600_000, waitMs: 600_000 });
    await expect.poll(async () => (await one.inspect("shared")).waiters.length).toBe(1);
    expect(await lease.release()).toBe(true);
    const next = await waiting;
    expect(next.token).toBeGreaterThan(lease.token);
    expect(await one.revoke("shared", { token: next.token, reason: "stuck" })).toBe(true);
    await expect.poll(() => next.signal.aborted).toBe(true);
    expect(next.state).toBe("lost");
  }
});

test("the type mapping of a client does not change the replies to the store", async () => {
  const typeMapping = { [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.SIMPLE_STRING]: Buffer };
  const locks = trial.by(await byNodeRedis({ RESP: 3, commandOptions: { typeMapping } }));
  const lease = await locks.mutex("typed").acquire();
  const { holders, mark } = await locks.inspect("typed");
  expect(holders).toMatchObject([{ token: lease.token }]);
  expect(mark).toBeNull();
  const waiting = locks.mutex("typed").acquire({ fairness: "strict" });
  await expect.poll(async () => (await locks.inspect("typed")).waiters.length).toBe(1);
  expect(await lease.release()).toBe(true);
  await (await waiting).release();
});

test("an ended client fails at once, and the error gives advice", async () => {
  const client = new Redis(server.port);
  const locks = trial.by(ioredis(client));
  const lease = await locks.mutex("ended").acquire();
  client.disconnect();
  await expect.poll(() => client.status).toBe("end");
  const stopwatch = new Stopwatch();
  expect(await lease.release()).toBe(true);
  const error = await locks
    .mutex("other")
    .acquire()
    .catch((reason: unknown) => reason);
  stopwatch.expectLessThan(500);
  expect(error).toBeInstanceOf(StoreError);
  expect(error).toMatchObject({ retryable: false, outcome: "not_applied" });
  expect(String(error)).toContain("connect() it again");
});

test("no event contains an owner, not even in an error of the client", async () => {
  const user = { username: "events", password: "password" };
  await server.ask("ACL", "SETUSER", "events", "on", ">password", "~*", "&*", "+@all");
  const locks = trial.by(byIoredis(user));
  const lease = await locks.mutex("secret").acquire({ transferable: true });
  const handed = JSON.parse(Buffer.from(String(lease.handle).slice(4), "base64url").toString());
  const told: unknown[] = [];
  const listen = (event: unknown): unknown => told.push(event);
  channel(channels.release).subscribe(listen);
  await server.ask("ACL", "SETUSER", "events", "-evalsha");
  await lease.release();
  channel(channels.release).unsubscribe(listen);
  expect(told).toMatchObject([{ outcome: "failed" }]);
  const text = inspect(told, { depth: Number.POSITIVE_INFINITY, showHidden: true });
  expect(text).toContain("NOPERM");
  expect(text).not.toContain(handed.claim.owner);
});

/** A program that closes everything while the server accepts no new connection. */
const PROGRAM = `
import { createClient } from "redis";
import { Holdfast } from "./dist/index.js";
import { redisStore } from "./dist/stores/redis/index.js";
const client = createClient({ url: process.argv[1] });
client.on("error", () => {});
await client.connect();
const locks = new Holdfast(redisStore({ client }));
process.kill(Number(process.argv[2]), "SIGSTOP");
await locks.mutex("m").acquire({ ttlMs: 200, storeTimeoutMs: 200 }).catch(() => {});
await locks.close();
client.destroy();
`;

test("a connection that a silent server does not accept keeps no process alive", async () => {
  const args = ["--input-type=module", "-e", PROGRAM, server.url, `${server.pid}`];
  try {
    // Killed, and so rejected, if the connection keeps it alive.
    await promisify(execFile)(process.execPath, args, { timeout: 60_000 });
  } finally {
    server.resume();
  }
});

test.concurrent("a list does not wait forever for a silent server", async () => {
  await using silent = await startRedis();
  await using own = new Trial(silent);
  const locks = own.ioredis(silent.port);
  await locks.inspect("listed");
  await silent.pause();
  await expect(locks.list().next()).rejects.toMatchObject({ code: "HF_STORE" });
  silent.resume();
});

test.concurrent("connect to a URL without a server gives the reason", async () => {
  const port = await onFreePorts(1, async ([free = 0]) => free);
  const why = `No Redis answers at 127.0.0.1:${port}: .*ECONNREFUSED`;
  await expect(connect(`redis://127.0.0.1:${port}`)).rejects.toThrow(new RegExp(why));
});

test("connect with an unknown user is refused at once", async () => {
  const url = `redis://nobody:wrong@127.0.0.1:${server.port}`;
  const stopwatch = new Stopwatch();
  await expect(connect(url)).rejects.toThrow(/check the client's user name and password/);
  stopwatch.expectLessThan(3_000);
});
