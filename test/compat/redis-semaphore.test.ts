/** The promises of the README of redis-semaphore 5, and the faults that must not return. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import * as original from "redis-semaphore";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import {
  defaultTimeoutOptions,
  LostLockError,
  MultiSemaphore,
  Mutex,
  RedlockMultiSemaphore,
  RedlockMutex,
  RedlockSemaphore,
  Semaphore,
  TimeoutError,
  type TimeoutOptions,
} from "../../src/compat/redis-semaphore/index.js";
import { holdRequest } from "../faults/late-copy.js";
import { startProxy } from "../faults/proxy.js";
import { RedlockTrial } from "../redlock/trial.js";
import { waitUntil } from "../servers/wait-until.js";

const ONCE = { acquireAttemptsLimit: 1 };

let trial: RedlockTrial;
let clients: Redis[];
let client: Redis;
const locks: { release(): Promise<void> }[] = [];

beforeAll(async () => {
  trial = await RedlockTrial.start(3);
  clients = trial.servers.map(({ port }) => new Redis(port));
  for (const one of clients) one.on("error", () => {});
  [client] = clients as [Redis];
});
afterAll(async () => {
  for (const one of clients ?? []) one.disconnect();
  await trial?.[Symbol.asyncDispose]();
});
beforeEach(async () => {
  for (const server of trial.servers) await server.ask("FLUSHALL");
});
afterEach(async () => {
  for (const server of trial.servers) server.resume();
  for (const lock of locks.splice(0)) await lock.release().catch(() => {});
});

/** It is released when the test ends. */
function kept<T extends { release(): Promise<void> }>(lock: T): T {
  locks.push(lock);
  return lock;
}

describe("Mutex", () => {
  it("tells no loss after a release that was called while it was acquired", async () => {
    const onLockLost = vi.fn();
    // A first answer past lockTimeout would be followed by another attempt, after the release.
    const options = { lockTimeout: 4_000, refreshInterval: 500, onLockLost };
    const mutexes = Array.from({ length: 50 }, (_, at) => new Mutex(client, `r${at}`, options));
    await Promise.all(mutexes.flatMap((mutex) => [mutex.acquire(), mutex.release()]));
    await sleep(1.1 * options.lockTimeout);
    expect(onLockLost).not.toHaveBeenCalled();
    expect(mutexes.filter(({ isAcquired }) => isAcquired)).toEqual([]);
  });

  it("is a key that holds its identifier, until it is released", async () => {
    const mutex = kept(new Mutex(client, "a"));
    expect(mutex.identifier).toMatch(/^[0-9a-f-]{36}$/);
    expect(mutex.isAcquired).toBe(false);
    await mutex.acquire();
    expect(mutex.isAcquired).toBe(true);
    expect(await client.get("mutex:a")).toBe(mutex.identifier);
    expect(await client.pttl("mutex:a")).toBeGreaterThan(5_000);
    await mutex.release();
    expect(mutex.isAcquired).toBe(false);
    expect(await client.exists("mutex:a")).toBe(0);
    await mutex.release();
    const { token = 0n } = mutex;
    await mutex.acquire();
    expect(mutex.token).toBeGreaterThan(token);
    expect(token).toBeGreaterThan(0n);
  });

  it("and the original exclude each other", async () => {
    const theirs = kept(new original.Mutex(client, "a"));
    await theirs.acquire();
    const ours = kept(new Mutex(client, "a", { acquireTimeout: 5_000 }));
    expect(await new Mutex(client, "a", ONCE).tryAcquire()).toBe(false);
    const waiting = ours.acquire();
    await sleep(50);
    await theirs.release();
    await waiting;
    expect(await new original.Mutex(client, "a", ONCE).tryAcquire()).toBe(false);
    await ours.release();
    expect(await theirs.tryAcquire()).toBe(true);
  });

  it("throws a TimeoutError in time, also when the server hangs, and leaves nothing", async () => {
    await kept(new Mutex(client, "a")).acquire();
    const late = new Mutex(client, "a", { acquireTimeout: 60 });
    await assert.rejects(late.acquire(), (error: unknown) => {
      assert.ok(error instanceof TimeoutError);
      assert.equal(error.message, "Acquire mutex mutex:a timeout");
      return true;
    });
    await trial.server(0).pause();
    const hung = new Mutex(client, "b", { acquireTimeout: 200 });
    await assert.rejects(hung.acquire(), { name: "TimeoutError" });
    trial.server(0).resume();
    await waitUntil(async () => (await client.exists("mutex:b")) === 0, {
      what: "nothing is left",
    });
  });

  it("stops trying when the signal aborts", async () => {
    await kept(new Mutex(client, "a")).acquire();
    const stop = new AbortController();
    const waiting = new Mutex(client, "a").acquire(stop.signal);
    stop.abort(new RangeError("enough"));
    await assert.rejects(waiting, { name: "RangeError", message: "enough" });
  });

  it("is refreshed while it is held", async () => {
    const mutex = kept(new Mutex(client, "a", { lockTimeout: 9_000, refreshInterval: 200 }));
    await mutex.acquire();
    for (let round = 0; round < 3; round += 1) {
      await client.pexpire("mutex:a", 6_000);
      const isRefreshed = async () => (await client.pttl("mutex:a")) > 6_000;
      await waitUntil(isRefreshed, { what: "a refresh" });
      assert.ok(mutex.isAcquired);
    }
    expect(await client.get("mutex:a")).toBe(mutex.identifier);
  });

  it("expires after stopRefresh, and tells no loss", async () => {
    const onLockLost = vi.fn();
    const options = { lockTimeout: 300, refreshInterval: 100, onLockLost };
    const mutex = kept(new Mutex(client, "a", options));
    await mutex.acquire();
    mutex.stopRefresh();
    await waitUntil(async () => (await client.exists("mutex:a")) === 0, { what: "it expires" });
    expect(mutex.isAcquired).toBe(false);
    expect(onLockLost).not.toHaveBeenCalled();
  });

  it("tells that it was lost, and leaves the next holder alone", async () => {
    const onLockLost = vi.fn();
    const mutex = kept(new Mutex(client, "a", { refreshInterval: 50, onLockLost }));
    await mutex.acquire();
    await client.set("mutex:a", "theirs");
    await waitUntil(() => onLockLost.mock.calls.length > 0, { what: "the callback is called" });
    const [[error], self] = [onLockLost.mock.calls[0] ?? [], onLockLost.mock.contexts[0]];
    expect(error).toBeInstanceOf(LostLockError);
    expect(error.message).toBe("Lost mutex for key mutex:a");
    expect(self).toBe(mutex);
    expect(mutex.isAcquired).toBe(false);
    await mutex.release();
    expect(await client.get("mutex:a")).toBe("theirs");
    expect(onLockLost).toHaveBeenCalledTimes(1);
  });

  it("tells a loss by the deadline when the server is silent, without a rejection", async () => {
    const rejections = vi.fn();
    process.on("unhandledRejection", rejections);
    try {
      const onLockLost = vi.fn();
      const options = { lockTimeout: 800, refreshInterval: 100, onLockLost };
      const mutex = new Mutex(client, "a", options);
      await mutex.acquire();
      await trial.server(0).pause();
      await waitUntil(() => !mutex.isAcquired, { what: "it is over by the clock" });
      await waitUntil(() => onLockLost.mock.calls.length > 0, { what: "the callback is called" });
      trial.server(0).resume();
      await client.ping();
      expect(onLockLost).toHaveBeenCalledTimes(1);
      expect(rejections).not.toHaveBeenCalled();
    } finally {
      process.off("unhandledRejection", rejections);
    }
  });

  it("knows in the first statement after a blocked event loop", async () => {
    const options = { lockTimeout: 500, onLockLost: () => {} };
    const mutex = kept(new Mutex(client, "a", options));
    await mutex.acquire();
    const untilMs = performance.now() + 700;
    while (performance.now() < untilMs);
    expect(mutex.isAcquired).toBe(false);
  });

  it("ends the program by default when it is lost, as the original", async () => {
    const listeners = process.listeners("unhandledRejection");
    process.removeAllListeners("unhandledRejection");
    try {
      const rejected = once(process, "unhandledRejection");
      const mutex = kept(new Mutex(client, "a", { refreshInterval: 50 }));
      await mutex.acquire();
      await client.del("mutex:a");
      const [error] = await rejected;
      expect(error).toBeInstanceOf(LostLockError);
    } finally {
      for (const listener of listeners) process.on("unhandledRejection", listener);
    }
  });

  it("goes on from a scheduler to a handler, old or new", async () => {
    const long = { lockTimeout: 60_000, refreshInterval: 0 };
    for (const [Scheduler, Handler] of [
      [Mutex, original.Mutex],
      [original.Mutex, Mutex],
      [Mutex, Mutex],
    ] as const) {
      const scheduler = new Scheduler(client, "a", long);
      assert.equal(await scheduler.tryAcquire(), true);
      const options = { lockTimeout: 5_000, acquiredExternally: true } as const;
      const handler = new Handler(client, "a", { ...options, identifier: scheduler.identifier });
      await handler.acquire();
      assert.ok(handler.isAcquired);
      // The shorter time counts from now on.
      assert.ok((await client.pttl("mutex:a")) <= 5_000);
      const identifier = "of no lock";
      const other = new Handler(client, "a", { ...options, identifier });
      assert.equal(await other.tryAcquire(), false);
      await handler.release();
      assert.equal(await client.exists("mutex:a"), 0);
    }
  });

  it("is one holder, however many callers share it", async () => {
    const mutex = kept(new Mutex(client, "a"));
    let holders = 0;
    const work = async (): Promise<void> => {
      await mutex.acquire();
      holders += 1;
      assert.equal(holders, 1);
      await sleep(5);
      holders -= 1;
      await mutex.release();
    };
    await Promise.all([work(), work(), work(), work()]);
  });

  it("keeps a lock whose acknowledgement was lost", async () => {
    await using proxy = await startProxy({ targetPort: trial.server(0).port, framing: "resp" });
    const cut = new Redis(proxy.port);
    cut.on("error", () => {});
    const warm = new Mutex(cut, "warm");
    await warm.acquire();
    await warm.release();
    let isLost = false;
    proxy.onReply(() => {
      if (isLost) return undefined;
      isLost = true;
      return "reset";
    });
    const mutex = new Mutex(cut, "a", ONCE);
    expect(await mutex.tryAcquire()).toBe(true);
    expect(isLost).toBe(true);
    await mutex.release();
    cut.disconnect();
  });

  it.each([
    ["Mutex", (redis: Redis) => new Mutex(redis, "a"), "mutex:a"],
    ["Semaphore", (redis: Redis) => new Semaphore(redis, "a", 1), "semaphore:a"],
    ["MultiSemaphore", (redis: Redis) => new MultiSemaphore(redis, "a", 2, 2), "semaphore:a"],
  ] as const)("keeps the next hold of a %s when a release arrives late", async (_, make, key) => {
    await using proxy = await startProxy({ targetPort: trial.server(0).port, framing: "resp" });
    const cut = new Redis(proxy.port);
    cut.on("error", () => {});
    const lock = kept(make(cut));
    // The scripts are known to the server after the first round.
    for (let round = 0; round < 2; round += 1) {
      await lock.acquire();
      if (round === 0) await lock.release();
    }
    const { identifier: first } = lock;
    const late = holdRequest(proxy, { match: ({ bytes }) => bytes.includes(first), resets: true });
    // The client sends it again on its next connection.
    await Promise.all([lock.release(), late.caught]);
    expect(await client.exists(key)).toBe(0);
    await lock.acquire();
    await late.deliver();
    expect(lock.isAcquired).toBe(true);
    expect(await client.exists(key)).toBe(1);
    expect(lock.identifier).not.toBe(first);
    await lock.release();
    expect(await client.exists(key)).toBe(0);
    cut.disconnect();
  });

  it("has the identifier before its first acquisition, and the chosen one always", async () => {
    const mutex = kept(new Mutex(client, "a", { identifierSuffix: "web" }));
    const { identifier } = mutex;
    expect(identifier).toMatch(/-web$/);
    const holder = new Mutex(client, "a");
    await holder.acquire();
    const waiting = mutex.acquire();
    await sleep(50);
    await holder.release();
    await waiting;
    expect([mutex.identifier, await client.get("mutex:a")]).toEqual([identifier, identifier]);
    await mutex.release();
    await mutex.acquire();
    expect(mutex.identifier).toMatch(/-web$/);
    expect(mutex.identifier).not.toBe(identifier);
    await mutex.release();
    const chosen = kept(new Mutex(client, "a", { identifier: "mine" }));
    for (let round = 0; round < 2; round += 1) {
      await chosen.acquire();
      expect(await client.get("mutex:a")).toBe("mine");
      await chosen.release();
    }
  });

  it("rejects with the error of its only server", async () => {
    const options = { enableOfflineQueue: false, lazyConnect: true };
    const dead = new Redis(trial.server(0).port, options);
    await assert.rejects(new Mutex(dead, "a").acquire(), /enableOfflineQueue/);
    dead.disconnect();
  });

  it("has the defaults and the messages of the original", () => {
    expect(defaultTimeoutOptions).toEqual(original.defaultTimeoutOptions);
    const wrong: (() => unknown)[] = [
      () => new Mutex(null as never, "a"),
      () => new Mutex(client, ""),
      () => new Mutex(client, 1 as never),
      () => new Mutex(client, "a", { identifier: "" }),
      () => new Mutex(client, "a", { acquiredExternally: true }),
      () => new RedlockMutex(client as never, "a"),
      () => new Semaphore(client, "a", 0),
      () => new Semaphore(client, "a", "2" as never),
      () => new MultiSemaphore(client, "a", 2, 0),
    ];
    for (const construct of wrong) assert.throws(construct, /required|must be|meanless/);
    assert.throws(() => new Mutex({} as never, "a"), /eval and evalsha/);
  });
});

describe.each([
  ["itself", (options: TimeoutOptions) => new Semaphore(client, "s", 2, options)],
  ["the original", (options: TimeoutOptions) => new original.Semaphore(client, "s", 2, options)],
] as const)("Semaphore beside %s", (_title, other) => {
  it("gives no more permits than its limit", async () => {
    const one = kept(new Semaphore(client, "s", 2));
    const two = kept(other({}));
    await one.acquire();
    await two.acquire();
    expect(await new Semaphore(client, "s", 2, ONCE).tryAcquire()).toBe(false);
    expect(await other(ONCE).tryAcquire()).toBe(false);
    await one.release();
    const three = kept(other(ONCE));
    expect(await three.tryAcquire()).toBe(true);
    expect(await new Semaphore(client, "s", 2, ONCE).tryAcquire()).toBe(false);
    await two.release();
    expect(await kept(new Semaphore(client, "s", 2, ONCE)).tryAcquire()).toBe(true);
  });

  it("drops a holder that is gone after its time, and keeps one that refreshes", async () => {
    const alive = kept(new Semaphore(client, "s", 2, { lockTimeout: 2_000, refreshInterval: 100 }));
    const gone = other({ lockTimeout: 1_000, refreshInterval: 0 });
    await alive.acquire();
    await gone.acquire();
    const next = kept(new Semaphore(client, "s", 2, { lockTimeout: 2_000, refreshInterval: 100 }));
    await next.acquire();
    expect(alive.isAcquired).toBe(true);
    expect(await client.zcard("semaphore:s")).toBe(2);
  });
});

describe("permits", () => {
  it("are scored by the server in milliseconds, under the identifier", async () => {
    const semaphore = kept(new Semaphore(client, "s", 1));
    await semaphore.acquire();
    const [member, score] = await client.zrange("semaphore:s", "0", "-1", "WITHSCORES");
    expect(member).toBe(semaphore.identifier);
    expect(Math.abs(Number(score) - Date.now())).toBeLessThan(60_000);
    const several = kept(new MultiSemaphore(client, "m", 3, 2));
    await several.acquire();
    const { identifier } = several;
    const members = await client.zrange("semaphore:m", "0", "-1");
    expect(members).toEqual([`${identifier}_0`, `${identifier}_1`]);
  });

  it("of a client whose clock is ahead end no live holder", async () => {
    const held = kept(new Semaphore(client, "s", 1));
    await held.acquire();
    vi.setSystemTime(Date.now() + 11_000);
    try {
      expect(await new Semaphore(client, "s", 1, ONCE).tryAcquire()).toBe(false);
    } finally {
      vi.useRealTimers();
    }
  });

  it("of one Semaphore are one permit, however many callers share it", async () => {
    const semaphore = kept(new Semaphore(client, "s", 2));
    await semaphore.acquire();
    const again = semaphore.tryAcquire(AbortSignal.timeout(50));
    await assert.rejects(again, { name: "TimeoutError" });
  });

  it("of MultiSemaphore and Semaphore share a key, also with the originals", async () => {
    const theirs = kept(new original.MultiSemaphore(client, "s", 5, 2));
    const ours = kept(new MultiSemaphore(client, "s", 5, 2));
    await theirs.acquire();
    await ours.acquire();
    expect(await new MultiSemaphore(client, "s", 5, 2, ONCE).tryAcquire()).toBe(false);
    expect(await new original.MultiSemaphore(client, "s", 5, 2, ONCE).tryAcquire()).toBe(false);
    const single = kept(new Semaphore(client, "s", 5, ONCE));
    expect(await single.tryAcquire()).toBe(true);
    await ours.release();
    expect(await client.zcard("semaphore:s")).toBe(3);
  });

  it("that are gone are not revived by a refresh", async () => {
    const onLockLost = vi.fn();
    const semaphore = kept(new Semaphore(client, "s", 1, { refreshInterval: 50, onLockLost }));
    await semaphore.acquire();
    await client.del("semaphore:s");
    await waitUntil(() => onLockLost.mock.calls.length > 0, { what: "the callback is called" });
    expect(await client.exists("semaphore:s")).toBe(0);
  });
});

describe("Redlock variants", () => {
  it("exclude the originals on a majority, with one server down", async () => {
    const theirs = kept(new original.RedlockMutex(clients, "a"));
    await theirs.acquire();
    expect(await new RedlockMutex(clients, "a", ONCE).tryAcquire()).toBe(false);
    await theirs.release();
    const ours = kept(new RedlockMutex(clients, "a"));
    await ours.acquire();
    expect(await new original.RedlockMutex(clients, "a", ONCE).tryAcquire()).toBe(false);
    await ours.release();
    await trial.server(2).pause();
    expect(await kept(new RedlockMutex(clients, "b", ONCE)).tryAcquire()).toBe(true);
  });

  it("take a server again that lost the key, and nothing after a release", async () => {
    const mutex = kept(new RedlockMutex(clients, "a", { refreshInterval: 100 }));
    await mutex.acquire();
    await trial.server(2).ask("FLUSHALL");
    await waitUntil(async () => (await trial.values("mutex:a"))[2] === mutex.identifier, {
      what: "the third server has it again",
    });
    await mutex.release();
    await waitUntil(async () => (await trial.values("mutex:a")).every((value) => value === null), {
      what: "no server has it",
    });
  });

  it("keep the limit where a majority can, and throw at construction elsewhere", async () => {
    const one = kept(new RedlockSemaphore(clients, "s", 1));
    await one.acquire();
    expect(await new original.RedlockSemaphore(clients, "s", 1, ONCE).tryAcquire()).toBe(false);
    await one.release();
    const single = kept(new RedlockMultiSemaphore([client], "m", 5, 2));
    await single.acquire();
    expect(await client.zcard("semaphore:m")).toBe(2);
    assert.throws(() => new RedlockSemaphore(clients, "s", 2), /3 holders.*Use Semaphore/);
    assert.throws(() => new RedlockMultiSemaphore(clients, "s", 5, 2), /Use Semaphore/);
  });
});
