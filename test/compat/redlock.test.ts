/** The promises of the README of redlock 5, and the faults of the package that must not return. */
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { createClient } from "redis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Holdfast } from "../../src/api/holdfast.js";
import Redlock, {
  ExecutionError,
  Lock,
  ResourceLockedError,
} from "../../src/compat/redlock/index.js";
import { startProxy } from "../faults/proxy.js";
import { RedlockTrial } from "../redlock/trial.js";
import { waitUntil } from "../servers/wait-until.js";

const require = createRequire(import.meta.url);
/** ioredis 4 has no types of its own. */
const Redis4 = require("ioredis4") as typeof Redis5;
/** The package itself, whose types its exports do not give: they are those of the replacement. */
const { default: Original, Lock: OriginalLock } = require("redlock") as {
  default: typeof Redlock;
  Lock: typeof Lock;
};
const LONG_MS = 30_000;
const ONCE = { retryCount: 0 };
const SOON = { retryCount: -1, retryDelay: 20, retryJitter: 10 };

let trial: RedlockTrial;
let clients: Redis[];
let redlock: Redlock;
/** The same servers by the package itself. */
let original: Redlock;
const ends: (() => unknown)[] = [];

beforeAll(async () => {
  trial = await RedlockTrial.start(3);
});
afterAll(() => trial?.[Symbol.asyncDispose]());

beforeEach(async () => {
  for (const server of trial.servers) await server.ask("FLUSHALL");
  clients = opened();
  redlock = new Redlock(clients, { retryDelay: 50, retryJitter: 20 });
  original = new Original(clients, { retryDelay: 50, retryJitter: 20 });
});
afterEach(async () => {
  for (const server of trial.servers) server.resume();
  for (const end of ends.splice(0)) await end();
});

function opened(): Redis[] {
  const some = trial.servers.map(({ port }) => new Redis(port));
  for (const client of some) client.on("error", () => {});
  ends.push(() => some.map((client) => client.disconnect()));
  return some;
}

/** A majority decides: the other server may do it a moment later. */
async function untilFree(...keys: string[]): Promise<void> {
  const isFree = async () => {
    const values = await Promise.all(keys.map((key) => trial.values(key)));
    return values.flat().every((value) => value === null);
  };
  await waitUntil(isFree, { what: "all servers are free" });
}

/** The lock, when all servers have answered, not only a majority. */
async function whole<L extends { attempts: readonly Promise<unknown>[] }>(work: Promise<L>) {
  const lock = await work;
  await Promise.all(lock.attempts);
  return lock;
}

async function refusal(work: Promise<unknown>): Promise<ExecutionError> {
  const error = await work.then(
    () => assert.fail("it should fail"),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof ExecutionError, String(error));
  return error;
}

/** The package has errors of its own. */
async function theirRefusal(work: Promise<unknown>): Promise<void> {
  await assert.rejects(work, { name: "ExecutionError" });
}

describe("acquire", () => {
  it("locks all resources with one value on all servers, until the expiration", async () => {
    const before = Date.now();
    const lock = await redlock.acquire(["a", "b"], LONG_MS);
    expect(lock).toBeInstanceOf(Lock);
    expect(lock.value).toMatch(/^[0-9a-f]{32}$/);
    expect(lock.resources).toEqual(["a", "b"]);
    const drift = LONG_MS * 0.01 + 2;
    expect(lock.expiration).toBeGreaterThanOrEqual(before + LONG_MS - drift - 1);
    expect(lock.expiration).toBeLessThanOrEqual(Date.now() + LONG_MS - drift);
    const [stats] = await Promise.all(lock.attempts);
    expect(stats).toMatchObject({ membershipSize: 3, quorumSize: 2 });
    expect(stats?.votesFor.size).toBe(clients.length);
    for (const client of clients) expect(stats?.votesFor.has(client)).toBe(true);
    for (const key of ["a", "b"])
      expect(await trial.values(key)).toEqual(Array(3).fill(lock.value));
    const { attempts } = await lock.release();
    expect((await attempts[0])?.votesFor.size).toBe(3);
    expect(lock.expiration).toBe(0);
    await untilFree("a", "b");
  });

  it("takes none of the resources when one is locked, and tells it per client", async () => {
    await whole(original.acquire(["b"], LONG_MS));
    const error = await refusal(redlock.acquire(["a", "b"], LONG_MS, { retryCount: 2 }));
    expect(error.name).toBe("ExecutionError");
    expect(error.attempts).toHaveLength(3);
    const stats = await error.attempts[2];
    const reasons = [...(stats?.votesAgainst.values() ?? [])];
    expect(reasons).toHaveLength(3);
    for (const reason of reasons) expect(reason).toBeInstanceOf(ResourceLockedError);
    await untilFree("a");
  });

  it("waits for ever with retryCount -1, and finds the release of an old program", async () => {
    const theirs = await whole(original.acquire(["a"], LONG_MS));
    const refused = new Promise((resume) => redlock.on("error", resume));
    const waiting = redlock.acquire(["a"], LONG_MS, SOON);
    await refused;
    await theirs.release();
    const lock = await waiting;
    expect(lock.attempts.length).toBeGreaterThan(1);
    await theirRefusal(original.acquire(["a"], LONG_MS, ONCE));
    await lock.release();
    await (await original.acquire(["a"], LONG_MS, ONCE)).release();
  });

  it("settles when two servers are split between two programs", async () => {
    const two = new Redlock(clients.slice(0, 2), ONCE);
    await trial.server(0).ask("SET", "a", "theirs", "PX", LONG_MS);
    const error = await refusal(two.acquire(["a"], LONG_MS));
    expect((await error.attempts[0])?.votesAgainst.size).toBe(1);
    await waitUntil(async () => (await trial.values("a"))[1] === null, { what: "it is withdrawn" });
  });

  it("does without a server that hangs, and tells its failure", async () => {
    await trial.server(2).pause();
    const lock = await redlock.acquire(["a"], 2_000, ONCE);
    expect(lock.expiration).toBeGreaterThan(Date.now());
    const seen: Error[] = [];
    redlock.on("error", (error: Error) => seen.push(error));
    const stats = await lock.attempts[0];
    expect(stats?.votesFor.size).toBe(2);
    expect([...(stats?.votesAgainst.keys() ?? [])]).toEqual([clients[2]]);
    expect(seen.map(({ name }) => name)).toEqual(["TimeLimitError"]);
  });

  it("keeps a lock whose acknowledgement was lost", async () => {
    await using proxy = await startProxy({ targetPort: trial.server(0).port, framing: "resp" });
    const client = new Redis(proxy.port);
    client.on("error", () => {});
    ends.push(() => client.disconnect());
    await client.ping();
    const one = new Redlock([client], ONCE);
    // The script is known to the server, so that the first request takes the key.
    await (await one.acquire(["warm"], 1_000)).release();
    let isLost = false;
    proxy.onReply(() => {
      if (isLost) return undefined;
      isLost = true;
      return "reset";
    });
    const asked = one.acquire(["a"], LONG_MS);
    const lock = await asked;
    expect(isLost).toBe(true);
    expect(await client.get("a")).toBe(lock.value);
  });

  it("emits contention as an error, and ends no program without a listener", async () => {
    const seen: unknown[] = [];
    await whole(original.acquire(["a"], LONG_MS));
    await Promise.all((await refusal(redlock.acquire(["a"], LONG_MS, ONCE))).attempts);
    redlock.on("error", (error) => seen.push(error));
    await refusal(redlock.acquire(["a"], LONG_MS, ONCE));
    await waitUntil(() => seen.length === 3, { what: "a vote of each client" });
    for (const error of seen) expect(error).toBeInstanceOf(ResourceLockedError);
  });
});

describe("extend", () => {
  it("gives a lock that replaces the old one", async () => {
    const lock = await redlock.acquire(["a"], 5_000);
    const next = await lock.extend(LONG_MS);
    expect(lock.expiration).toBe(0);
    expect(next.value).toBe(lock.value);
    expect(next.expiration).toBeGreaterThan(Date.now() + LONG_MS / 2);
    // A majority decides; the other server does it a moment later.
    const isLong = async () => Number(await trial.server(0).ask("PTTL", "a")) > LONG_MS / 2;
    await waitUntil(isLong, { what: "the key is extended" });
    await assert.rejects(lock.extend(5_000), { message: "Cannot extend an already-expired lock." });
    await next.release();
  });

  it("revives nothing that is gone, and says so at once", async () => {
    const lock = await whole(redlock.acquire(["a", "b"], LONG_MS));
    for (const server of trial.servers) await server.ask("DEL", "a");
    const error = await refusal(lock.extend(LONG_MS));
    expect(error.attempts).toHaveLength(1);
    await untilFree("a");
    expect(await trial.values("b")).toEqual(Array(3).fill(lock.value));
  });

  it("sends nothing after the expiration, even if the key is still there", async () => {
    const lock = await redlock.acquire(["a"], LONG_MS);
    lock.expiration = Date.now() - 1;
    const error = await refusal(lock.extend(LONG_MS));
    expect(error.attempts).toEqual([]);
  });
});

describe("release", () => {
  it("fails at once for a lock that is gone, and leaves the next holder alone", async () => {
    const lock = await whole(redlock.acquire(["a"], LONG_MS));
    for (const server of trial.servers) await server.ask("SET", "a", "theirs");
    const error = await refusal(lock.release());
    expect(error.attempts).toHaveLength(1);
    expect(await trial.values("a")).toEqual(Array(3).fill("theirs"));
  });

  it("takes a lock of another process by its value, and of the package", async () => {
    const { resources, value, expiration } = await whole(redlock.acquire(["a"], LONG_MS));
    await new Lock(new Redlock(opened()), resources, value, [], expiration).release();
    await untilFree("a");
    const theirs = await whole(original.acquire(["a"], LONG_MS));
    const ours = new Lock(redlock, theirs.resources, theirs.value, [], theirs.expiration);
    expect((await ours.extend(LONG_MS)).value).toBe(theirs.value);
    const next = await whole(redlock.acquire(["b"], LONG_MS));
    const { resources: keys, value: text, expiration: end } = next;
    await new OriginalLock(original, keys, text, [], end).release();
    await untilFree("b");
  });
});

describe("using", () => {
  const SHORT = { automaticExtensionThreshold: 700 };

  it("extends the lock until the routine ends, and gives its value", async () => {
    const often = { automaticExtensionThreshold: 8_500 };
    const value = await redlock.using(["a", "b"], 9_000, often, async (signal) => {
      const ask = (...words: string[]): Promise<unknown[]> =>
        Promise.all(trial.servers.map((server) => server.ask(...words)));
      for (let round = 0; round < 3; round += 1) {
        await ask("PEXPIRE", "b", "6000");
        const isExtended = async () =>
          (await ask("PTTL", "b")).every((leftMs) => Number(leftMs) > 6_000);
        await waitUntil(isExtended, { what: "an extension on all servers" });
        assert.ok(!signal.aborted, String(signal.error));
        await theirRefusal(original.acquire(["b"], 1_000, ONCE));
      }
      return 42;
    });
    expect(value).toBe(42);
    await untilFree("a", "b");
  });

  it("aborts with the error when the lock is gone", async () => {
    const error = await redlock.using(["a"], 1_000, SHORT, async (signal) => {
      for (const server of trial.servers) await server.ask("SET", "a", "theirs");
      await new Promise((resume) => signal.addEventListener("abort", resume));
      expect(signal.aborted).toBe(true);
      expect(signal.reason).toBe(signal.error);
      return signal.error;
    });
    expect(error).toBeInstanceOf(ExecutionError);
    expect(await trial.values("a")).toEqual(Array(3).fill("theirs"));
  });

  it("aborts by the expiration when no server answers, and keeps the value", async () => {
    const lost = await redlock.using(["a"], 1_500, SHORT, async (signal) => {
      const grantedMs = performance.now();
      for (const server of trial.servers) await server.pause();
      await new Promise((resume) => signal.addEventListener("abort", resume));
      const heldMs = performance.now() - grantedMs;
      for (const server of trial.servers) server.resume();
      return { heldMs, error: signal.error };
    });
    expect(lost.error).toBeInstanceOf(ExecutionError);
    // The timer of the deadline may be late, but never waits for a server.
    expect(lost.heldMs).toBeGreaterThan(500);
  });

  it("tells the loss in the first statement after a blocked event loop", async () => {
    const isAborted = await redlock.using(
      ["a"],
      700,
      { automaticExtensionThreshold: 500 },
      async (signal) => {
        const untilMs = performance.now() + 900;
        while (performance.now() < untilMs);
        return signal.aborted;
      },
    );
    expect(isAborted).toBe(true);
  });

  it("gives the value of the routine, and its error, although the release fails", async () => {
    const lose = async (): Promise<void> => {
      for (const server of trial.servers) await server.ask("DEL", "a");
    };
    const value = redlock.using(["a"], LONG_MS, async () => {
      await lose();
      return "done";
    });
    expect(await value).toBe("done");
    const failed = redlock.using(["a"], LONG_MS, async () => {
      await lose();
      throw new RangeError("mine");
    });
    await assert.rejects(failed, { name: "RangeError", message: "mine" });
  });
});

describe("beside Holdfast", () => {
  it("shares its keys with the store redlock", async () => {
    const { locks } = await trial.open();
    const lock = await redlock.acquire(["a"], LONG_MS);
    expect(await locks.mutex("a").tryAcquire()).toBe(null);
    await lock.release();
    const lease = await locks.mutex("a").acquire();
    await refusal(redlock.acquire(["a"], LONG_MS, ONCE));
    await lease.release();
    await (await redlock.acquire(["a"], LONG_MS, SOON)).release();
    expect(locks).toBeInstanceOf(Holdfast);
  });
});

describe("clients", () => {
  it("may be of ioredis 4, 5 and 6 and of node-redis, with a prefix of keys", async () => {
    const [{ port = 0 } = {}] = trial.servers;
    const node = createClient({ url: `redis://127.0.0.1:${port}` });
    node.on("error", () => {});
    await node.connect();
    const others = [new Redis4(port), new Redis5(port), new Redis(port, { keyPrefix: "pre:" })];
    ends.push(
      () => node.destroy(),
      () => others.map((client) => client.disconnect()),
    );
    for (const client of [...others, node]) {
      const one = new Redlock([client as never], ONCE);
      const lock = await one.acquire(["c"], LONG_MS);
      await refusal(one.acquire(["c"], LONG_MS));
      await (await lock.extend(LONG_MS)).release();
    }
    const prefixed = await new Redlock([others[2] as Redis]).acquire(["c"], LONG_MS);
    expect(await trial.server(0).ask("GET", "pre:c")).toBe(prefixed.value);
  });

  it("end by quit", async () => {
    await Promise.all(clients.map((client) => client.ping()));
    await redlock.quit();
    const isEnded = (): boolean => clients.every(({ status }) => status === "end");
    await waitUntil(isEnded, { what: "all clients have ended" });
  });
});

describe("a use that cannot work", () => {
  it("throws at construction, and says what to do", () => {
    assert.throws(() => new Redlock([]), /at least one redis client/);
    assert.throws(() => new Redlock([{} as never]), /eval and evalsha/);
    const custom = { acquireScript: (script: string) => script };
    assert.throws(
      () => new Redlock(clients, {}, custom),
      /custom acquireScript.*Leave the scripts out/,
    );
  });

  it("throws for a duration that is not whole, or too short for the threshold", async () => {
    const message = "Duration must be an integer value in milliseconds.";
    await assert.rejects(redlock.acquire(["a"], 1.5), { message });
    await assert.rejects(
      redlock.using(["a"], 550, async () => {}),
      /at least 100ms greater/,
    );
    await assert.rejects(redlock.using(["a"], 5_000, {}), /routine is not a function/);
  });
});

describe("tokens", () => {
  const [KEY, OTHER] = ["token", "token:other"] as const;

  it("rise from one lock to the next, on one server, and stay with an extended lock", async () => {
    const [client] = clients as [Redis];
    const one = new Redlock([client], SOON);
    const old = new Original([client], SOON);
    const first = await one.acquire([KEY, OTHER], LONG_MS);
    const extended = await first.extend(LONG_MS);
    expect(extended.token).toBe(first.token);
    await extended.release();
    await (await old.acquire([KEY], LONG_MS)).release();
    const second = await one.using([KEY], LONG_MS, async ({ token }) => token);
    assert(first.token !== undefined && second !== undefined);
    expect(second).toBeGreaterThan(first.token);
    // Programs put locks into logs, and JSON has no bigint.
    expect(Object.keys(first).sort()).toEqual(Object.keys(await held(old, client)).sort());
  });

  /** A lock of the package, which has not been released. */
  async function held(old: Redlock, client: Redis): Promise<Lock> {
    await client.del(KEY);
    return await old.acquire([KEY], LONG_MS);
  }

  it("are missing with several servers, whose clocks differ", async () => {
    expect((await redlock.acquire([KEY], LONG_MS)).token).toBe(undefined);
  });

  it("are missing where the user may not ask for the time", async () => {
    const [server] = trial.servers;
    assert(server);
    await server.ask("ACL", "SETUSER", "timeless", "on", ">p", "~*", "+@all", "-time");
    const user = { port: server.port, username: "timeless", password: "p" };
    const client = new Redis(user);
    ends.push(() => client.disconnect());
    const lock = await new Redlock([client], ONCE).acquire([KEY], LONG_MS);
    expect(lock.token).toBe(undefined);
    await lock.release();
  });
});
