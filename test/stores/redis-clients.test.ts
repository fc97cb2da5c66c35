/** Clients with prefixes and reply types, and clients that are closed too early. */
import { execFile } from "node:child_process";
import { channel } from "node:diagnostics_channel";
import { inspect, promisify } from "node:util";
import { Redis } from "ioredis";
import { Redis as Valkey } from "iovalkey";
import { createClient, RESP_TYPES } from "redis";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { connect } from "../../src/connect.js";
import { StoreError } from "../../src/errors.js";
import { channels } from "../../src/events.js";
import { onFreePorts } from "../servers/free-port.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { type Client, Trial } from "./redis-trial.js";

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

async function nodeRedis(options: object): Promise<Client> {
  const client = createClient({ url: server.url, ...options });
  trial.closeLater(() => client.destroy());
  return (await client.connect()) as unknown as Client;
}

function ioredis(options: object = {}): Redis {
  const client = new Redis({ port: server.port, ...options });
  trial.closeLater(() => client.disconnect());
  return client;
}

test("both libraries use the same key prefix and exclude each other", async () => {
  const keyPrefix = "my app:";
  const locks = trial.by(await nodeRedis({ keyPrefix }), () => {});
  const others = trial.by(ioredis({ keyPrefix }), () => {});
  const apart = trial.by(await nodeRedis({}), () => {});
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
  const valkey = new Valkey({ port: server.port });
  trial.closeLater(() => valkey.disconnect());
  const locks = trial.by(valkey, () => {});
  const others = trial.by(ioredis(), () => {});
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
  const client = await nodeRedis({ RESP: 3, commandOptions: { typeMapping } });
  const locks = trial.by(client, () => {});
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
  const client = ioredis();
  const locks = trial.by(client, () => {});
  const lease = await locks.mutex("ended").acquire({ ttlMs: 1_000 });
  client.disconnect();
  await expect.poll(() => client.status).toBe("end");
  const startMs = performance.now();
  expect(await lease.release()).toBe(true);
  const error = await locks
    .mutex("other")
    .acquire()
    .catch((reason: unknown) => reason);
  expect(performance.now() - startMs).toBeLessThan(500);
  expect(error).toBeInstanceOf(StoreError);
  expect(error).toMatchObject({ retryable: false, outcome: "not_applied" });
  expect(String(error)).toContain("connect() it again");
});

test("no event contains an owner, not even in an error of the client", async () => {
  const user = { username: "events", password: "password" };
  await server.ask("ACL", "SETUSER", "events", "on", ">password", "~*", "&*", "+@all");
  const locks = trial.by(ioredis(user), () => {});
  const lease = await locks.mutex("secret").acquire({ transferable: true, ttlMs: 1_000 });
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
    await promisify(execFile)(process.execPath, args, { timeout: 8_000 });
  } finally {
    server.resume();
  }
}, 10_000);

test("a list does not wait for ever for a silent server", async () => {
  const locks = trial.by(ioredis(), () => {});
  await locks.inspect("listed");
  await server.pause();
  try {
    await expect(locks.list().next()).rejects.toMatchObject({ code: "HF_STORE" });
  } finally {
    server.resume();
  }
}, 10_000);

test("connect to a URL without a server gives the reason", async () => {
  const port = await onFreePorts(1, async ([free = 0]) => free);
  const why = `No Redis answers at 127.0.0.1:${port}: .*ECONNREFUSED`;
  await expect(connect(`redis://127.0.0.1:${port}`)).rejects.toThrow(new RegExp(why));
}, 15_000);

test("connect with an unknown user is refused at once", async () => {
  const url = `redis://nobody:wrong@127.0.0.1:${server.port}`;
  const startMs = performance.now();
  await expect(connect(url)).rejects.toThrow(/check the client's user name and password/);
  expect(performance.now() - startMs).toBeLessThan(3_000);
});
