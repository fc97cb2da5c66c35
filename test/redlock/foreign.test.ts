/** Keys with data of another program: never written, never deleted, and named in errors. */
import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { AcquireTimeoutError, QuorumError } from "../../src/errors/index.js";
import { channels, type ForeignEvent } from "../../src/events/events.js";
import { Stopwatch } from "../fixtures/stopwatch.js";
import type { RedisServer } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";
import { type RedlockParty, RedlockTrial } from "./trial.js";

/** Creates a key of each type, like an application. */
const TYPES: Record<string, readonly string[]> = {
  hash: ["HSET", "KEY", "id", "7"],
  list: ["RPUSH", "KEY", "7"],
  set: ["SADD", "KEY", "7"],
  zset: ["ZADD", "KEY", "7", "seven"],
  stream: ["XADD", "KEY", "1-1", "id", "7"],
};

async function plant(servers: readonly RedisServer[], key: string, type: string): Promise<void> {
  const words = (TYPES[type] ?? ["SET", "KEY", type]).map((word) => (word === "KEY" ? key : word));
  for (const server of servers) await server.ask("DEL", key);
  for (const server of servers) await server.ask(...(words as [string, ...string[]]));
}

/** A dump of a key of any type. */
async function contents(servers: readonly RedisServer[], key: string): Promise<unknown> {
  const asked = servers.map(async (server) => [
    await server.ask("DEBUG", "DIGEST-VALUE", key),
    await server.ask("PTTL", key),
  ]);
  return await Promise.all(asked);
}

async function failure(work: Promise<unknown>): Promise<QuorumError> {
  const error = await work.catch((reason: unknown) => reason);
  assert.ok(error instanceof QuorumError, String(error));
  return error;
}

/** Records the events on `holdfast:foreign` until it is disposed. */
class ForeignEvents implements Disposable {
  readonly #wheres: string[] = [];
  readonly #listen = (event: unknown): void => {
    const { store, where } = event as ForeignEvent;
    if (store === "redlock") this.#wheres.push(where);
  };

  constructor() {
    subscribe(channels.foreign, this.#listen);
  }

  /** The events that contain this text. */
  at(text: string): string[] {
    return this.#wheres.filter((where) => where.includes(text));
  }

  [Symbol.dispose](): void {
    unsubscribe(channels.foreign, this.#listen);
  }
}

let trial: RedlockTrial;
beforeAll(async () => {
  trial = await RedlockTrial.start(3);
});
beforeEach(() => trial.empty());
afterEach(() => trial.closeParties());
afterAll(() => trial?.[Symbol.asyncDispose]());

/** All kinds of calls for a name. */
async function tryAll({ locks }: RedlockParty, name: string): Promise<void> {
  await locks
    .mutex(name)
    .tryAcquire()
    .catch(() => {});
  await locks
    .mutex(name)
    .acquire({ waitMs: 300 })
    .catch(() => {});
  await locks.revoke(name, { token: 1n, reason: "test" }).catch(() => {});
  await locks.inspect(name).catch(() => {});
  for await (const _ of locks.list());
}

describe("a key of the application", () => {
  it.each(Object.keys(TYPES))("of type %s does not count as a free lock", async (type) => {
    const party = await trial.open();
    await party.locks.mutex("warm").run(() => {});
    await plant(trial.servers, "users", type);
    const before = await contents(trial.servers, "users");
    const stopwatch = new Stopwatch();
    for (const attempt of [
      party.locks.mutex("users").tryAcquire(),
      party.locks.mutex("users").acquire({ waitMs: 60_000 }),
    ]) {
      const error = await failure(attempt);
      expect(error.message).toContain(`it holds data that is not ours at "users": a ${type}`);
      expect(error.message).toContain("choose a namespace");
      expect(error).toMatchObject({ outcome: "not_applied", retryable: false, lockName: "users" });
      expect(error.votes.map(({ vote }) => vote)).toEqual(["foreign", "foreign", "foreign"]);
    }
    stopwatch.expectLessThan(10_000, "at once");
    await tryAll(party, "users");
    expect(await contents(trial.servers, "users")).toEqual(before);
    // The same name in a namespace is another key.
    const { locks } = await trial.open({ namespace: "app" });
    await locks.mutex("users").run(() => {});
    expect(await contents(trial.servers, "users")).toEqual(before);
  });

  it("that is a string excludes, like the value of another client", async () => {
    const party = await trial.open();
    await party.locks.mutex("warm").run(() => {});
    await plant(trial.servers, "users", "some text");
    const before = await contents(trial.servers, "users");
    expect(await party.locks.mutex("users").tryAcquire()).toBe(null);
    const waiting = party.locks.mutex("users").acquire({ waitMs: 900 });
    const error = await waiting.catch((reason: unknown) => reason);
    assert.ok(error instanceof AcquireTimeoutError, String(error));
    expect(error.message).toContain("held by another program, by a key that Holdfast did not");
    await tryAll(party, "users");
    expect(await contents(trial.servers, "users")).toEqual(before);
  });

  it("at one node of three costs only the vote of that node", async () => {
    const { locks } = await trial.open();
    await locks.mutex("warm").run(() => {});
    const odd = trial.servers.slice(0, 1);
    await plant(odd, "users", "hash");
    const before = await contents(odd, "users");
    const lease = await locks.mutex("users").acquire();
    expect(await locks.mutex("users").tryAcquire()).toBe(null);
    await lease.renew();
    expect((await locks.inspect("users")).holders).toMatchObject([{ token: lease.token }]);
    assert.equal(await lease.release(), true);
    expect(await contents(odd, "users")).toEqual(before);
  });

  it("that replaces a lease is not changed by its holder", async () => {
    const { locks } = await trial.open();
    const lease = await locks.mutex("users").acquire();
    const isHeld = async () => (await trial.values("users")).every((value) => value !== null);
    await waitUntil(isHeld, { what: "all nodes voted" });
    await plant(trial.servers, "users", "hash");
    const before = await contents(trial.servers, "users");
    await lease.renew().catch(() => {});
    expect(lease.signal.reason).toMatchObject({ reason: "replaced" });
    assert.equal(await lease.release(), false);
    expect((await locks.inspect("users")).holders).toMatchObject([{ token: 0n }]);
    expect(await contents(trial.servers, "users")).toEqual(before);
  });
});

describe("a key of the store", () => {
  const keys = { ballot: "holdfast::b:l:m", marker: "holdfast:node" };
  it.each(
    Object.keys(keys).flatMap((what) =>
      [...Object.keys(TYPES), "", "text", "!", "17 H"].map((type) => [what, type]),
    ),
  )('(%s) that holds "%s" is named, and left alone', async (what, type) => {
    const key = keys[what as keyof typeof keys];
    const party = await trial.open();
    await party.locks.mutex("warm").run(() => {});
    await plant(trial.servers, key, type);
    const before = await contents(trial.servers, key);
    for (const attempt of [
      party.locks.mutex("m").tryAcquire(),
      party.locks.mutex("m").acquire({ waitMs: 60_000 }),
    ]) {
      const error = await failure(attempt);
      const held = type in TYPES ? type : "string";
      expect(error.message).toContain(`it holds data that is not ours at "${key}": a ${held}`);
      expect(error).toMatchObject({ outcome: "not_applied", retryable: false });
    }
    await tryAll(party, "m");
    expect(await contents(trial.servers, key)).toEqual(before);
    expect(await trial.values("m"), "no vote is left").toEqual([null, null, null]);
  });

  it.each(Object.keys(TYPES).concat("text"))(
    "(waiters) that holds %s is not changed: a waiter polls",
    async (type) => {
      using told = new ForeignEvents();
      const [a, b] = [await trial.open(), await trial.open()];
      const key = `holdfast::w:l:${type}`;
      await plant(trial.servers, key, type);
      const before = await contents(trial.servers, key);
      const lease = await a.locks.mutex(type).acquire();
      const waiting = b.locks.mutex(type).acquire({ waitMs: 60_000 });
      expect(await b.locks.mutex(type).tryAcquire()).toBe(null);
      assert.equal(await lease.release(), true);
      const next = await waiting;
      assert.ok(next.token > lease.token);
      assert.equal(await next.release(), true);
      await tryAll(a, type);
      expect(await contents(trial.servers, key)).toEqual(before);
      expect(told.at(key)).toContain(`"${key}", a ${type in TYPES ? type : "string"} (node n0)`);
    },
  );

  it("(waiters) with foreign members keeps them: a waiter polls", async () => {
    const [a, b] = [await trial.open(), await trial.open()];
    const lease = await a.locks.mutex("m").acquire();
    const waiting = b.locks.mutex("m").acquire({ waitMs: 60_000 });
    const isEntered = async () => (await a.locks.inspect("m")).waiters.length > 0;
    await waitUntil(isEntered, { what: "a waiter" });
    for (const server of trial.servers) {
      for (const member of ["seven", "a/b", "/"]) {
        await server.ask("ZADD", "holdfast::w:l:m", "1", member);
      }
      await server.ask("ZADD", "holdfast::w:l:m", "+inf", "last");
    }
    assert.equal(await lease.release(), true);
    assert.equal(await (await waiting).release(), true);
    for (const server of trial.servers) {
      const left = (await server.ask("ZRANGE", "holdfast::w:l:m", "0", "-1")) as string[];
      expect(left).toEqual(expect.arrayContaining(["seven", "a/b", "/", "last"]));
    }
  });
});

describe("holdfast:foreign reports", () => {
  it("a key at one node of three, and a name that a list skips", async () => {
    using told = new ForeignEvents();
    const { locks } = await trial.open();
    await locks.mutex("seen").run(() => {});
    const key = "holdfast::b:l:told";
    await plant(trial.servers.slice(0, 1), key, "hash");
    await locks.mutex("told").run(() => {});
    // The other nodes are a majority: the call may end before this node has answered.
    const isTold = async () => told.at(key).includes(`"${key}", a hash (node n0)`);
    await waitUntil(isTold, { what: "the report of node n0" });
    await plant(trial.servers, key, "text");
    const held = await locks.mutex("seen").acquire();
    const listed: string[] = [];
    for await (const { name } of locks.list()) listed.push(name);
    expect(listed).toEqual(["seen"]);
    for (const name of trial.names) {
      expect(told.at(key)).toContain(`"${key}", a string (node ${name})`);
    }
    const error = await failure(locks.inspect("told"));
    expect(error.message).toContain(`it holds data that is not ours at "${key}": a string`);
    await held.release();
  });

  it("a foreign message", async () => {
    using told = new ForeignEvents();
    const { locks } = await trial.open();
    await locks.mutex("m").run(() => {});
    const [server] = trial.servers;
    const heard = async (): Promise<string[]> =>
      ((await server?.ask("PUBSUB", "CHANNELS", "holdfast@*")) as string[]) ?? [];
    const isListening = async () => (await heard()).some((channel) => !channel.includes("/"));
    await waitUntil(isListening, { what: "the client listens" });
    const channel = (await heard()).find((one) => !one.includes("/")) ?? "";
    for (const message of ["", "hello", "q 7", "x owner", "w"]) {
      await server?.ask("PUBLISH", channel, message);
    }
    const isTold = async () => told.at("a message to this client").length === 5;
    await waitUntil(isTold, { what: "five foreign messages" });
    await locks.mutex("m").run(() => {});
  });
});

it("a stored ballot far ahead of the clock is named as the reason", async () => {
  const { locks } = await trial.open();
  await locks.mutex("warm").run(() => {});
  const key = "holdfast::b:l:m";
  const before = "8999999999999999";
  await plant(trial.servers.slice(0, 1), key, before);
  // One node does not spread its ballot to the other nodes.
  for (let round = 0; round < 3; round += 1) await locks.mutex("m").run(() => {});
  await plant(trial.servers, key, before);
  const error = await failure(locks.mutex("m").acquire());
  expect(error.message).toContain(`a ballot more than a year ahead of its clock at "${key}"`);
  expect(error.message).not.toMatch(/clock of this client/);
  for (const server of trial.servers) expect(await server.ask("GET", key)).toBe(before);
});
