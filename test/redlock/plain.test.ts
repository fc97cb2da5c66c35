/** Plain keys on one server: what it shares with other programs, and what it remembers. */
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Holdfast } from "../../src/api/holdfast.js";
import { InvalidOptionError, QuorumError } from "../../src/errors/index.js";
import { driverOf } from "../../src/stores/redis-client/supported-clients.js";
import { type RedlockStoreOptions, redlockStore } from "../../src/stores/redlock/index.js";
import { SingleServerLayout } from "../../src/stores/redlock/layout.js";
import { releaseArgs } from "../../src/stores/redlock/protocol.js";
import { NODE_SCRIPTS, RedlockNode } from "../../src/stores/redlock/quorum.js";
import { RedlockStore } from "../../src/stores/redlock/redlock-store.js";
import { networkRuntime } from "../../src/time/runtime.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";
import { expectLongMark } from "./kept-record.js";

/** The used part of redlock 4, which has no types. */
const Redlock = createRequire(import.meta.url)("redlock4") as new (
  clients: readonly unknown[],
  options: { retryCount: number },
) => { lock(resource: string, ttl: number): Promise<{ unlock(): Promise<void> }> };

/** Calls that must not wait for long have so much time, also on a busy machine. */
const PATIENT_MS = 20_000;
const DAY_MS = 86_400_000;

let server: RedisServer;
const ends: (() => unknown)[] = [];
beforeAll(async () => {
  server = await startRedis();
});
afterAll(async () => {
  for (const end of ends) await end();
  await server?.close();
});

function connected(options: object = {}): Redis {
  const client = new Redis({ port: server.port, ...options });
  client.on("error", () => {});
  ends.unshift(() => client.disconnect());
  return client;
}

function open(options: Partial<RedlockStoreOptions> = {}, client: Redis = connected()): Holdfast {
  const locks = new Holdfast(redlockStore({ client, ...options }));
  ends.unshift(() => locks.close());
  return locks;
}

describe("beside other programs", () => {
  it("redlock 4 and the store exclude each other on the same key", async () => {
    const locks = open({ pollMs: 50 });
    const theirs = new Redlock([connected()], { retryCount: 0 });
    const held = await theirs.lock("job", 60_000);
    expect(await locks.mutex("job").tryAcquire()).toBe(null);
    expect((await locks.inspect("job")).holders).toMatchObject([{ token: 0n, meta: {} }]);
    const waiting = locks.mutex("job").acquire({ waitMs: PATIENT_MS });
    await held.unlock();
    const lease = await waiting;
    await expect(theirs.lock("job", 1_000)).rejects.toThrow();
    // Their script deletes by its own value only.
    await expect(held.unlock()).rejects.toThrow();
    lease.assertHeld();
    await lease.release();
    await (await theirs.lock("job", 60_000)).unlock();
  });

  it("the value of the key is what SET NX PX sets, with a prefix before the name", async () => {
    const locks = open({ prefix: "mutex:" });
    const lease = await locks.mutex("m").acquire({ ttlMs: 60_000 });
    expect(await server.ask("SET", "mutex:m", "theirs", "NX", "PX", 1_000)).toBe(null);
    expect(Number(await server.ask("PTTL", "mutex:m"))).toBeGreaterThan(0);
    const listed = [];
    for await (const { name } of locks.list()) listed.push(name);
    expect(listed).toEqual(["m"]);
    // The same lock under its whole name.
    expect((await open().inspect("mutex:m")).holders).toMatchObject([{ token: lease.token }]);
    expect(await lease.release()).toBe(true);
    expect(await server.ask("EXISTS", "mutex:m")).toBe(0);
  });

  it("a release by another program reaches waiters that poll, whatever their place", async () => {
    const locks = [open({ pollMs: 20 }), open({ pollMs: 20 }), open({ pollMs: 20 })];
    await server.ask("SET", "shared", "theirs", "PX", 600_000);
    const waiting = locks.map(async (one) => {
      const lease = await one.mutex("shared").acquire({ waitMs: PATIENT_MS });
      await lease.release();
    });
    await server.ask("DEL", "shared");
    await Promise.all(waiting);
  });

  it("a key that another program took ends the lease, and is not taken back", async () => {
    const locks = open();
    const lease = await locks.mutex("stolen").acquire({ ttlMs: 3_000 });
    await server.ask("SET", "stolen", "theirs", "PX", 60_000);
    await waitUntil(() => lease.signal.aborted, { what: "the loss is told" });
    expect(await server.ask("GET", "stolen")).toBe("theirs");
    expect(await lease.release()).toBe(false);
    expect(await server.ask("GET", "stolen")).toBe("theirs");
  });

  it("a renewal does not make a lease again that the server lost", async () => {
    const locks = open();
    const lease = await locks.mutex("lost").acquire({ ttlMs: 3_000 });
    await server.ask("DEL", "lost");
    await waitUntil(() => lease.signal.aborted, { what: "the loss is told" });
    expect(await server.ask("EXISTS", "lost")).toBe(0);
  });
});

describe("memory", () => {
  it("tokens rise through the loss of all data", async () => {
    const first = await open().mutex("kept").acquire();
    await server.ask("FLUSHALL");
    // The floor is a second behind the clock of the server.
    await waitUntil(() => BigInt(Date.now() - 2_000) * 1_000n > first.token, { what: "2 s" });
    const second = await open().mutex("kept").acquire({ waitMs: PATIENT_MS });
    assert.ok(second.token > first.token);
    await second.release();
  });

  it("a client whose clock is behind gets a token above the floor, by a second round", async () => {
    const client = connected();
    const runtime = networkRuntime();
    const clock = { ...runtime.clock, wallUs: () => runtime.clock.wallUs() - 3_600_000_000 };
    const node = new RedlockNode("a", driverOf(client), NODE_SCRIPTS.single);
    const terms = { namespace: "", nodeTimeoutMs: 200, driftFactor: 0.01, maxTtlMs: 30_000 };
    const store = new RedlockStore([node], { ...terms, bootstrap: "now" }, { ...runtime, clock });
    const locks = new Holdfast(store);
    ends.unshift(() => locks.close());
    const before = BigInt(Date.now() - 1_500) * 1_000n;
    const lease = await locks.mutex("behind").acquire({ waitMs: PATIENT_MS });
    assert.ok(lease.token > before, `${lease.token}`);
    await lease.release();
  });

  it('with bootstrap: "wait", a server that restarts gives out no lock for maxTtlMs', async () => {
    const young = await startRedis();
    const client = new Redis({ port: young.port });
    client.on("error", () => {});
    const options = { client, bootstrap: "wait", maxTtlMs: 3_000 } as const;
    const locks = new Holdfast(redlockStore(options), { ttlMs: 3_000 });
    try {
      const error = await locks
        .mutex("m")
        .acquire({ ttlMs: 3_000, waitMs: 0, storeTimeoutMs: 1_000 })
        .catch((reason: unknown) => reason);
      // A busy machine may have taken 3 s to get here.
      const { uptime_in_seconds: uptime } = await young.info("server");
      if (Number(uptime) < 2) assert.ok(error instanceof QuorumError, String(error));
      const lease = await locks.mutex("m").acquire({ waitMs: PATIENT_MS });
      const after = await young.info("server");
      expect(Number(after.uptime_in_seconds)).toBeGreaterThanOrEqual(3);
      await lease.release();
      await expect(locks.mutex("m").acquire({ ttlMs: 5_000 })).rejects.toThrow(/maxTtlMs/);
    } finally {
      await locks.close();
      client.disconnect();
      await young.close();
    }
  });
});

describe("a mark of thirty days", () => {
  const keepMs = 30 * DAY_MS;

  it("has a record that outlives it", async () => {
    const locks = open();
    await locks.once("long", () => 1, { keepMs });
    await expectLongMark(server, "long");
    const again = await open().once("long", () => 2, { keepMs });
    assert.ok(!again.ran && again.state === "done");
  });

  it("has its record for as long when another owner gives up its attempt", async () => {
    const locks = open();
    await locks.once("tried", () => 1, { keepMs });
    const node = new RedlockNode("a", driverOf(connected()), NODE_SCRIPTS.single);
    const layout = new SingleServerLayout("", "", { isCluster: false, keyPrefix: "" });
    const ballot = (Date.now() + 60_000) * 1_000;
    expect(await node.ask(layout.keysOf("once", "tried"), releaseArgs("p", ballot, 50))).toBe(0);
    await expectLongMark(server, "tried");
  });
});

describe("options", () => {
  it("refuses what cannot work", () => {
    const client = connected();
    const refused = (options: RedlockStoreOptions, words: RegExp) => {
      expect(() => redlockStore(options)).toThrow(InvalidOptionError);
      expect(() => redlockStore(options)).toThrow(words);
    };
    refused({ client, clients: [client] }, /alone/);
    refused({ clients: [client] }, /for one server give client/);
    refused({ client, nodeNames: ["a"] }, /several servers/);
    refused({ client, prefix: "a:", namespace: "b" }, /together/);
    refused({ client, pollMs: 0 }, /at least 1/);
  });

  it("refuses a user who may not run scripts, and names the rights", async () => {
    await server.ask("ACL", "SETUSER", "mute", "on", ">p", "~*", "&*", "+@all", "-@scripting");
    const locks = open({}, connected({ username: "mute", password: "p" }));
    const asked = locks.mutex("mute").acquire({ waitMs: PATIENT_MS });
    await expect(asked).rejects.toThrow(/eval.*ACL|rights/i);
  });
});
