/** Other implementations, new nodes, other sets of nodes, clocks and databases. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect } from "../../src/api/connect.js";
import { Holdfast } from "../../src/api/holdfast.js";
import { InvalidOptionError, QuorumError, UnsupportedError } from "../../src/errors/index.js";
import { driverOf } from "../../src/stores/redis-client/supported-clients.js";
import { redlockStore } from "../../src/stores/redlock/index.js";
import { RedlockNode } from "../../src/stores/redlock/quorum.js";
import { RedlockStore } from "../../src/stores/redlock/redlock-store.js";
import { networkRuntime } from "../../src/time/runtime.js";
import { readNodeCall } from "../fixtures/node-call.js";
import { Stopwatch } from "../fixtures/stopwatch.js";
import { waitUntil } from "../servers/wait-until.js";
import { expectLongMark } from "./kept-record.js";
import { RedlockTrial } from "./trial.js";

const HOUR_US = 3_600_000_000;
const PROMPT_MS = 4_000;

/** The used part of redlock 4, which has no types. */
const Redlock = createRequire(import.meta.url)("redlock4") as new (
  clients: readonly unknown[],
  options: { retryCount: number },
) => { lock(resource: string, ttl: number): Promise<{ unlock(): Promise<void> }> };

/** The release script of the published algorithm. */
const RELEASE = `if redis.call("get",KEYS[1]) == ARGV[1] then
  return redis.call("del",KEYS[1])
else
  return 0
end`;

describe("three nodes", () => {
  let trial: RedlockTrial;
  beforeAll(async () => {
    trial = await RedlockTrial.start(3);
  });
  afterAll(() => trial?.[Symbol.asyncDispose]());

  it("a client of the published commands and the store exclude each other", async () => {
    const { locks } = await trial.open();
    const set = (value: string) =>
      Promise.all(
        trial.servers.map((server) => server.ask("SET", "job", value, "NX", "PX", 30_000)),
      );
    const del = (value: string) =>
      Promise.all(trial.servers.map((server) => server.ask("EVAL", RELEASE, 1, "job", value)));
    expect(await set("theirs")).toEqual(["OK", "OK", "OK"]);
    expect(await locks.mutex("job").tryAcquire()).toBe(null);
    expect((await locks.inspect("job")).holders).toMatchObject([{ token: 0n, meta: {} }]);
    const waiting = locks.mutex("job").acquire({ ttlMs: 30_000 });
    expect(await del("theirs")).toEqual([1, 1, 1]);
    // The other client publishes nothing: the store polls.
    const lease = await waiting;
    // A majority has voted; the last node may vote later.
    const isOne = async () => new Set(await trial.values("job")).size === 1;
    await waitUntil(isOne, { what: "one value on all nodes" });
    expect(await set("theirs")).toEqual([null, null, null]);
    expect(await del("theirs")).toEqual([0, 0, 0]);
    expect(await trial.server(0).ask("PTTL", "job")).toBeGreaterThan(25_000);
    assert.equal(await lease.release(), true);
    await waitUntil(isOne, { what: "no value on any node" });
    expect(await set("theirs")).toEqual(["OK", "OK", "OK"]);
    await del("theirs");
  });

  it("redlock 4 and the store exclude each other", async () => {
    const { locks, clients } = await trial.open();
    const redlock = new Redlock([...clients], { retryCount: 0 });
    const theirs = await redlock.lock("shared", 30_000);
    expect(await locks.mutex("shared").tryAcquire()).toBe(null);
    await theirs.unlock();
    const ours = await locks.mutex("shared").acquire({ waitMs: 60_000 });
    await assert.rejects(async () => await redlock.lock("shared", 1_000), {
      name: "LockError",
    });
    assert.equal(await ours.release(), true);
    await (await redlock.lock("shared", 1_000)).unlock();
  });

  it("tokens rise with clients an hour behind and ahead, in one round if known", async () => {
    let votes = 0;
    const parties = [0, -HOUR_US, HOUR_US].map((shiftUs, at) => {
      const runtime = networkRuntime();
      const clock = { ...runtime.clock, wallUs: () => runtime.clock.wallUs() + shiftUs };
      const clients = trial.servers.map((server) => new Redis(server.port));
      const nodes = clients.map((client, index) => {
        const driver = driverOf(client);
        const send: typeof driver.send = (key, command, args) => {
          if (index === 0 && readNodeCall(args).args[0] === "vote") votes += 1;
          return driver.send(key, command, args);
        };
        return new RedlockNode(`n${index}`, { ...driver, send });
      });
      const settings = {
        namespace: "hours",
        nodeTimeoutMs: 500,
        driftFactor: 0.01,
        maxTtlMs: 30_000,
        bootstrap: "now",
      } as const;
      const locks = new Holdfast(new RedlockStore(nodes, settings, { ...runtime, clock }));
      return { locks, clients, at };
    });
    const take = async (locks: Holdfast): Promise<{ token: bigint; rounds: number }> => {
      const before = votes;
      const lease = await locks.mutex("m").acquire();
      assert.equal(await lease.release(), true);
      return { token: lease.token, rounds: votes - before };
    };
    try {
      for (const { locks } of parties) await locks.mutex("warm").run(() => {});
      let last = 0n;
      for (let round = 0; round < 4; round += 1) {
        for (const { locks, at } of parties) {
          const first = await take(locks);
          assert.ok(first.token > last, `${first.token} of ${at} after ${last}`);
          expect(first.rounds).toBeLessThanOrEqual(2);
          const second = await take(locks);
          assert.ok(second.token > first.token);
          expect(second.rounds).toBe(1);
          last = second.token;
        }
      }
    } finally {
      await Promise.all(parties.map(({ locks }) => locks.close()));
      for (const { clients } of parties) for (const client of clients) client.disconnect();
    }
  });

  it("a ballot a year ahead is refused, and locks still work", async () => {
    const { locks, clients } = await trial.open();
    const runtime = networkRuntime();
    const clock = { ...runtime.clock, wallUs: () => runtime.clock.wallUs() + 400 * 24 * HOUR_US };
    const nodes = clients.map((client, at) => new RedlockNode(`n${at}`, driverOf(client)));
    const settings = {
      namespace: "",
      nodeTimeoutMs: 2_000,
      driftFactor: 0.01,
      maxTtlMs: 30_000,
      bootstrap: "wait",
    } as const;
    await using wrong = new Holdfast(new RedlockStore(nodes, settings, { ...runtime, clock }));
    const error = await wrong
      .mutex("year")
      .acquire()
      .catch((reason: unknown) => reason);
    assert.ok(error instanceof QuorumError, String(error));
    expect(error.votes.map(({ vote }) => vote)).toEqual(["too_high", "too_high", "too_high"]);
    expect(error.message).toMatch(/clock of this client/);
    const lease = await locks.mutex("year").acquire({ waitMs: 60_000 });
    expect(Number(lease.token)).toBeLessThan((Date.now() + 60_000) * 1_000);
    await lease.release();
  });

  it("clients lock in their own database, with their own prefix", async () => {
    const clients = trial.servers.map(({ port }) => {
      return new Redis({ port, db: 5, keyPrefix: "my app:" });
    });
    const options = { clients, nodeNames: trial.names, bootstrap: "now" } as const;
    const locks = new Holdfast(redlockStore(options));
    const others = await Promise.all(
      trial.servers.map(({ url }) => createClient({ url, database: 7 }).connect()),
    );
    const known = { clients: others, nodeNames: trial.names, bootstrap: "now" } as const;
    const other = new Holdfast(redlockStore(known));
    try {
      const lease = await locks.mutex("m").acquire();
      const seven = await other.mutex("m").tryAcquire();
      assert.ok(seven, "another database");
      for (const server of trial.servers) {
        await using client = await server.client();
        // A majority has voted; the last node may vote later.
        for (const [database, key] of [
          ["5", "my app:m"],
          ["7", "m"],
        ] as const) {
          await client.send("SELECT", database);
          const isThere = async () => (await client.send("EXISTS", key)) === 1;
          await waitUntil(isThere, { what: `${key} in database ${database}` });
        }
        await client.send("SELECT", "5");
        expect(((await client.send("KEYS", "*")) as string[]).sort()).toEqual([
          "my app:holdfast::b:l:m",
          "my app:holdfast:node",
          "my app:m",
        ]);
      }
      const listed = [];
      for await (const view of locks.list({ prefix: "m" })) listed.push(view.name);
      expect(listed).toEqual(["m"]);
      assert.equal(await lease.release(), true);
    } finally {
      await Promise.all([locks.close(), other.close()]);
      for (const client of clients) client.disconnect();
      for (const client of others) client.destroy();
    }
  });

  it("the ACL rules of the documentation are enough", async () => {
    const page = readFileSync(new URL("../../docs/stores/redlock.md", import.meta.url), "utf8");
    const [line = ""] = /^ACL SETUSER .*$/m.exec(page) ?? [];
    const clients = await Promise.all(
      trial.servers.map(async (server) => {
        await server.ask(...line.split(" "));
        return new Redis({ port: server.port, username: "locks", password: "password" });
      }),
    );
    const options = {
      clients,
      nodeNames: trial.names,
      namespace: "app",
      bootstrap: "now",
    } as const;
    const locks = new Holdfast(redlockStore(options));
    try {
      const lease = await locks.mutex("m").acquire({ ttlMs: 10_000 });
      await lease.renew();
      const waiting = locks.mutex("m").acquire({ ttlMs: 10_000 });
      expect((await locks.inspect("m")).holders).toHaveLength(1);
      await lease.release();
      const next = await waiting;
      await locks.revoke("m", { token: next.token, reason: "test" });
      await locks.once("o", () => 1, { keepMs: 1_000 });
      const listed = [];
      for await (const view of locks.list()) listed.push(view);
      expect(listed).toEqual([]);
    } finally {
      await locks.close();
      for (const client of clients) client.disconnect();
    }
  });

  it("a mark of thirty days has a record that outlives it, on each node", async () => {
    const { locks } = await trial.open();
    const keepMs = 30 * 86_400_000;
    await locks.once("long", () => 1, { keepMs });
    const again = await locks.once("long", () => 2, { keepMs });
    assert.ok(!again.ran && again.state === "done");
    // A majority has the mark; the last node may get it later.
    const isMarked = async () => {
      const values = await trial.values("holdfast::o:long");
      return values.every((value) => value?.startsWith("done:"));
    };
    await waitUntil(isMarked, { what: "the mark on all nodes" });
    for (const server of trial.servers) await expectLongMark(server, "long");
  });

  it("has no shared locks, and the error gives the reason and another store", async () => {
    const { locks } = await trial.open();
    for (const make of [() => locks.readWrite("m").read, () => locks.semaphore("m", 2)]) {
      expect(make).toThrow(UnsupportedError);
      expect(make).toThrow(
        /one holder by majority.*memory, file, redis, postgres, etcd and zookeeper/,
      );
    }
  });

  it("a URL names all nodes", async () => {
    const hosts = trial.servers.map(({ port }) => `127.0.0.1:${port}`).join(",");
    const byUrl = await connect(`redlock://${hosts}/3?bootstrap=now&namespace=u`);
    const lease = await byUrl.mutex("m").acquire();
    await using client = await trial.server(2).client();
    await client.send("SELECT", "3");
    const isThere = async () => (await client.send("EXISTS", "holdfast:u:l:m")) === 1;
    await waitUntil(isThere, { what: "a lock in database 3" });
    assert.equal(await lease.release(), true);
    await byUrl.close();
    const odd = connect(`redlock://${hosts}?bootstrap=soon`);
    await assert.rejects(odd, { code: "HF_INVALID_OPTION", option: "bootstrap" });
  });
});

describe.concurrent("nodes", () => {
  it("that are new report their wait, and vote when bootstrap declares them complete", async () => {
    await using trial = await RedlockTrial.start(3);
    const { locks } = await trial.open({ bootstrap: "wait" });
    const stopwatch = new Stopwatch();
    const error = await locks
      .mutex("m")
      .acquire()
      .catch((reason: unknown) => reason);
    assert.ok(error instanceof QuorumError, String(error));
    stopwatch.expectLessThan(PROMPT_MS);
    expect(error.message).toMatch(/votes in \d+ s.*bootstrap: "now" \(\?bootstrap=now\)/);
    expect(error.votes.every(({ vote }) => vote === "not_voting")).toBe(true);
    await assert.rejects(locks.mutex("m").tryAcquire(), { code: "HF_STORE_QUORUM" });
    // A client with bootstrap declares the nodes complete.
    const { locks: sure } = await trial.open({ bootstrap: "now" });
    await sure.mutex("m").run(() => {});
    await locks.mutex("m").run(() => {});
  });

  it("that are new vote after the longest lease since the start of their process", async () => {
    await using trial = await RedlockTrial.start(3);
    const { locks } = await trial.open({ bootstrap: "wait", maxTtlMs: 3_000 });
    const lease = await locks.mutex("m").acquire({ ttlMs: 3_000 });
    for (const server of trial.servers) {
      const { uptime_in_seconds = "" } = await server.info("server");
      expect(Number(uptime_in_seconds)).toBeGreaterThanOrEqual(2);
    }
    assert.equal(await lease.release(), true);
  });

  it("of another set are refused without bootstrap", async () => {
    await using trial = await RedlockTrial.start(4);
    const clients = trial.servers.map(({ port }) => new Redis(port));
    const open = (from: number, bootstrap: "wait" | "now"): Holdfast =>
      new Holdfast(redlockStore({ clients: clients.slice(from, from + 3), bootstrap }));
    const [first, second, third] = [open(0, "now"), open(1, "wait"), open(1, "now")];
    try {
      await first.mutex("m").run(() => {});
      const error = await second
        .mutex("m")
        .acquire()
        .catch((reason: unknown) => reason);
      assert.ok(error instanceof QuorumError, String(error));
      expect(error.message).toMatch(/belongs to the nodes 127.0.0.1:\d+,/);
      expect(error.retryable).toBe(false);
      await third.mutex("m").run(() => {});
      await assert.rejects(first.mutex("m").acquire(), { code: "HF_STORE_QUORUM" });
    } finally {
      await Promise.all([first, second, third].map((locks) => locks.close()));
      for (const client of clients) client.disconnect();
    }
  });

  it("must be different servers, and more than one", async () => {
    await using trial = await RedlockTrial.start(1);
    const clients = [1, 2].map(() => new Redis(trial.server(0).port));
    try {
      const invalid = (options: object): unknown => {
        try {
          return redlockStore({ clients, ...options });
        } catch (error) {
          return error;
        }
      };
      expect(invalid({})).toBeInstanceOf(InvalidOptionError);
      expect(invalid({ clients: clients.slice(1) })).toMatchObject({ option: "clients" });
      for (const [option, value] of Object.entries({
        nodeNames: ["a"],
        namespace: "\ud800",
        nodeTimeoutMs: 0,
        driftFactor: 1,
        maxTtlMs: Number.POSITIVE_INFINITY,
        bootstrap: "soon",
      })) {
        const named = { nodeNames: ["a", "b"], [option]: value };
        expect(invalid(named), option).toMatchObject({ code: "HF_INVALID_OPTION", option });
      }
      await using locks = new Holdfast(redlockStore({ clients, nodeNames: ["a", "b"] }));
      await assert.rejects(locks.mutex("m").acquire(), {
        code: "HF_INVALID_OPTION",
        message: /a and b are one/,
      });
    } finally {
      for (const client of clients) client.disconnect();
    }
  });
});
