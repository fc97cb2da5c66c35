/**
 * Nodes that crash, hang, are cut off, are slow or have a wrong clock, while clients hold and wait;
 * and the known failures of other implementations of the algorithm.
 */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LeaseLostError, QuorumError, StoreError } from "../../src/errors/index.js";
import type { Lease } from "../../src/lease/lease.js";
import { holdRequest, recordRequest } from "../faults/late-copy.js";
import { loseReply } from "../faults/message-loss.js";
import type { FaultProxy } from "../faults/proxy.js";
import { hasVerb } from "../fixtures/node-call.js";
import { Stopwatch } from "../fixtures/stopwatch.js";
import { untilRenewed } from "../redis/until-renewed.js";
import { makeClocks } from "../servers/clock-shift.js";
import { waitUntil } from "../servers/wait-until.js";
import { type RedlockParty, RedlockTrial } from "./trial.js";

/** Longer than a call without waiting takes. */
const PROMPT_MS = 4_000;
const ttlMs = 6_000;

type Fault = (trial: RedlockTrial, at: number, proxies: readonly FaultProxy[]) => Promise<unknown>;

/** The result of work that takes less than `limitMs` on a quiet machine. */
async function prompt<T>(work: Promise<T>, limitMs = PROMPT_MS, about?: string): Promise<T> {
  const stopwatch = new Stopwatch();
  const value = await work;
  stopwatch.expectLessThan(limitMs, about);
  return value;
}

const faults: Record<string, Fault> = {
  killed: (trial, at) => trial.server(at).kill(),
  "stopped (SIGSTOP)": (trial, at) => trial.server(at).pause(),
  "cut off from requests": async (_, at, proxies) => proxies[at]?.blackhole("requests"),
  "cut off in their replies": async (_, at, proxies) => proxies[at]?.blackhole("replies"),
  "slow past the node timeout": async (_, at, proxies) => proxies[at]?.delay("both", 150),
  "cut off with a reset": async (_, at, proxies) => proxies[at]?.cut(),
};

describe.concurrent("of five nodes", () => {
  for (const count of [1, 2]) {
    it.each(Object.entries(faults))(`${count} may be %s`, async (_, strike) => {
      await using trial = await RedlockTrial.start(5);
      const [a, b] = [await trial.open({ proxied: true }), await trial.open({ proxied: true })];
      const lease = await a.locks.mutex("m").acquire({ ttlMs });
      const waiting = b.locks.mutex("m").acquire({ ttlMs });
      await waitUntil(async () => (await b.locks.inspect("m")).waiters.length === 1, {
        what: "a waiter",
      });
      for (let at = 0; at < count; at += 1) {
        await strike(trial, at, [...a.proxies]);
        await strike(trial, at, [...b.proxies]);
      }
      try {
        // The call waits for one node timeout, not for the whole store timeout.
        const other = await prompt(b.locks.mutex("n").acquire({ ttlMs }));
        assert.equal(await a.locks.mutex("n").tryAcquire(), null);
        assert.equal(await other.release(), true);
        await untilRenewed(lease);
        assert.equal(await prompt(lease.release()), true);
        const next = await prompt(waiting);
        assert.ok(next.token > lease.token);
        assert.equal(await next.release(), true);
      } finally {
        for (const server of trial.servers) if (server.running) server.resume();
        for (const proxy of [...a.proxies, ...b.proxies]) await proxy.heal();
      }
    });
  }

  it("three may not: leases and calls end in time, and errors report each node", async () => {
    await using trial = await RedlockTrial.start(5);
    const { locks } = await trial.open();
    const lease = await locks.mutex("m").acquire({ ttlMs: 4_000 });
    const { signal } = lease;
    const value = locks.mutex("n").run(
      async () => {
        await Promise.all([0, 1].map((at) => trial.server(at).pause()));
        await trial.server(2).kill();
        return "the value";
      },
      { ttlMs: 4_000 },
    );
    try {
      // The release fails, which does not replace the result of the body.
      assert.equal(await value, "the value");
      await waitUntil(() => signal.aborted, { what: "the holder is told of the loss" });
      assert.ok(signal.reason instanceof LeaseLostError);
      const failing = locks.mutex("o").acquire({ storeTimeoutMs: 300 });
      const error = await prompt(
        failing.catch((reason: unknown) => reason),
        300 + PROMPT_MS,
      );
      assert.ok(error instanceof QuorumError, String(error));
      const votes = error.votes.map(({ vote }) => vote);
      expect(votes.slice(0, 2)).toEqual(["time_out", "time_out"]);
      expect(["time_out", "error"]).toContain(votes[2]);
      expect(votes.slice(3)).toEqual(["granted", "granted"]);
      expect(error.message).toMatch(/n0: no answer in time/);
      assert.equal(error.lockName, "o");
      const tried = locks.mutex("p").tryAcquire({ storeTimeoutMs: 100 });
      await assert.rejects(tried, StoreError);
    } finally {
      for (const at of [0, 1]) trial.server(at).resume();
    }
    // The votes of failed attempts expire, and locks work again.
    await trial.server(2).start();
    const again = await locks.mutex("o").acquire({ waitMs: 20_000 });
    assert.equal(await again.release(), true);
  });
});

/** Holds on a bare majority: the last node never gets the request. */
async function holdBare({ locks, proxies }: RedlockParty, leaseMs: number): Promise<Lease> {
  const last = proxies.at(-1);
  // All nodes are known and vote first.
  await locks.mutex("warm").run(() => {});
  // For the rest of the test: a client sends queued requests later.
  last?.cut();
  return await locks.mutex("m").acquire({ ttlMs: leaseMs, renew: false });
}

describe.concurrent("a node that forgets, under a holder on a bare majority", () => {
  const leaseMs = 2_500;
  const forgetful: Record<string, (trial: RedlockTrial) => Promise<unknown>> = {
    "restarts empty": (trial) => trial.server(1).restart({ keepData: false }),
    "restarts with an old snapshot": async (trial) => {
      await trial.server(1).kill();
      await trial.server(1).start();
    },
    "is flushed": (trial) => trial.server(1).ask("FLUSHALL"),
  };

  it.each(Object.entries(forgetful))("%s: no other client acquires", async (_, forget) => {
    await using trial = await RedlockTrial.start(3, () => ({
      args: ["--dbfilename", "dump.rdb"],
    }));
    const options = { maxTtlMs: leaseMs, bootstrap: "now" } as const;
    const a = await trial.open({ ...options, proxied: true });
    const b = await trial.open(options);
    await b.locks.mutex("warm").run(() => {}, { ttlMs: leaseMs });
    await trial.server(1).ask("SAVE");
    const lease = await holdBare(a, leaseMs);
    expect((await trial.values("m")).map((value) => value !== null)).toEqual([true, true, false]);
    await forget(trial);
    // Two of three nodes have no key: both would vote unless the restarted one waits.
    expect((await trial.values("m")).map((value) => value !== null)).toEqual([true, false, false]);
    let tries = 0;
    let next: Lease | null = null;
    while (next === null) {
      next = await b.locks
        .mutex("m")
        .tryAcquire({ ttlMs: 2_000, storeTimeoutMs: 200 })
        .catch((error: unknown) => {
          assert.ok(error instanceof StoreError, String(error));
          return null;
        });
      if (next) expect(lease.remainingMs(), "the holder's time is over").toBe(0);
      tries += 1;
      await sleep(20);
    }
    expect(tries).toBeGreaterThan(1);
    assert.ok(next.token > lease.token);
    await next.release();
    // The restarted node votes again, only above every ballot it may have lost.
    await waitUntil(
      async () => {
        await b.locks.mutex("again").run(() => {}, { ttlMs: 2_000 });
        return (await trial.server(1).ask("EXISTS", "holdfast::b:l:again")) === 1;
      },
      { what: "a vote of the node that forgot" },
    );
  });

  it("a renewal repairs nodes, so that other nodes may fail next", async () => {
    await using trial = await RedlockTrial.start(3);
    const a = await trial.open();
    await a.locks.mutex("warm").run(() => {});
    const lease = await a.locks.mutex("m").acquire({ ttlMs });
    await waitUntil(async () => (await trial.values("m"))[2] !== null, { what: "the last vote" });
    await trial.server(2).ask("DEL", "m");
    await waitUntil(async () => (await trial.values("m"))[2] !== null, { what: "the repair" });
    await trial.server(0).kill();
    await untilRenewed(lease);
    assert.equal(await lease.release(), true);
  });

  it("a longer lease is announced, and a restarted node waits while it may live", async () => {
    await using trial = await RedlockTrial.start(3);
    const { locks } = await trial.open();
    const read = async (at: number, from: number): Promise<number> =>
      Number(await trial.server(at).ask("GETRANGE", "holdfast:node", `${from}`, `${from + 12}`));
    const [MAX_AT, FROM_AT, LONG_AT, UNTIL_AT] = [16, 102, 115, 128];
    await locks.mutex("m").run(() => {});
    const untilRead = (at: number, value: number): Promise<void> =>
      waitUntil(async () => (await read(0, at)) === value, { what: `${value} in the marker` });
    await untilRead(MAX_AT, 30_000);
    expect(await read(0, LONG_AT)).toBe(0);
    const lease = await locks.mutex("m").acquire({ ttlMs: 90_000 });
    await untilRead(LONG_AT, 90_000);
    await lease.renew(120_000);
    expect(lease.remainingMs()).toBeGreaterThan(110_000);
    await untilRead(LONG_AT, 120_000);
    await lease.release();
    expect(await read(0, MAX_AT), "that is no reason to wait forever").toBe(30_000);

    /** How long the first node waits after it lost its data. */
    const waitsFor = async (): Promise<number> => {
      await trial.server(0).restart({ keepData: false });
      // A client that learns of such leases only from the nodes.
      const other = await trial.open();
      const isMarked = async (): Promise<boolean> => {
        await other.locks.mutex("m").run(() => {});
        return (await read(0, FROM_AT)) > 0;
      };
      await waitUntil(isMarked, { what: "a marker" });
      const [seconds] = (await trial.server(0).ask("TIME")) as string[];
      return (await read(0, FROM_AT)) / 1000 - Number(seconds);
    };
    expect(await waitsFor(), "such leases may still be granted").toBeGreaterThan(3_600);
    // The state some time later.
    const later = async (agoMs: number): Promise<void> => {
      for (const at of [1, 2]) {
        const [seconds] = (await trial.server(at).ask("TIME")) as string[];
        const untilMs = Number(seconds) * 1000 - agoMs;
        await trial.server(at).ask("SETRANGE", "holdfast:node", `${UNTIL_AT}`, `${untilMs}`);
      }
    };
    await later(10_000);
    const waitMs = await waitsFor();
    expect(waitMs, "the last of them may live").toBeGreaterThan(60);
    expect(waitMs).toBeLessThan(120);
    await later(121_000);
    expect(await waitsFor(), "none of them lives").toBeLessThan(31);
  });
});

describe.concurrent("messages", () => {
  it("a split vote of two nodes is resolved, and so is one of four", async () => {
    for (const nodes of [2, 4]) {
      await using trial = await RedlockTrial.start(nodes);
      const [a, b] = [await trial.open({ proxied: true }), await trial.open({ proxied: true })];
      for (const { locks } of [a, b]) await locks.mutex("warm").run(() => {});
      const isVote = { match: hasVerb("vote") };
      // Each client is first at half of the nodes: its other requests wait until both have votes.
      const half = nodes / 2;
      const late = [...a.proxies.slice(half), ...b.proxies.slice(0, half)];
      const held = late.map((proxy) => holdRequest(proxy, isVote));
      const both = Promise.all(
        [a, b].map(async ({ locks }) => {
          const lease = await locks.mutex("m").acquire({ ttlMs: 10_000 });
          return lease.release();
        }),
      );
      await Promise.all(held.map(({ caught }) => caught));
      await Promise.all(held.map((request) => request.deliver()));
      expect(await prompt(both, PROMPT_MS, `${nodes} nodes`)).toEqual([true, true]);
    }
  });

  it("lost replies for a free lock cost a node timeout", async () => {
    await using trial = await RedlockTrial.start(3);
    const { locks, proxies } = await trial.open({ proxied: true });
    await locks.mutex("warm").run(() => {});
    for (const lost of [1, 2, 3]) {
      const losses = proxies
        .slice(0, lost)
        .map((proxy) => loseReply(proxy, { match: hasVerb("vote") }));
      const acquiring = locks.mutex("m").acquire({ ttlMs: 30_000 });
      const lease = await prompt(acquiring, 1_900, `${lost} lost`);
      await Promise.all(losses.map(({ struck }) => struck));
      assert.equal(await lease.release(), true);
    }
  });

  it("a vote that arrives after its attempt was aborted holds nothing", async () => {
    await using trial = await RedlockTrial.start(3);
    const [a, b] = [await trial.open({ proxied: true }), await trial.open()];
    await a.locks.mutex("warm").run(() => {});
    const isVote = { match: hasVerb("vote") };
    const held = a.proxies.map((proxy) => holdRequest(proxy, isVote));
    const giveUp = new AbortController();
    const acquiring = a.locks.mutex("m").acquire({ signal: giveUp.signal, ttlMs: 30_000 });
    await Promise.all(held.map(({ caught }) => caught));
    giveUp.abort(new Error("gave up"));
    await assert.rejects(acquiring, { message: "gave up" });
    await Promise.all(held.map((request) => request.deliver()));
    await waitUntil(async () => (await trial.values("m")).every((value) => value === null), {
      what: "no node has the lock",
    });
    assert.ok(await b.locks.mutex("m").tryAcquire());
  });

  it("a late copy of a vote after the release holds nothing", async () => {
    await using trial = await RedlockTrial.start(3);
    const { locks, proxies } = await trial.open({ proxied: true });
    await locks.mutex("warm").run(() => {});
    const isVote = { match: hasVerb("vote") };
    const copies = proxies.map((proxy) => recordRequest(proxy, isVote));
    await locks.mutex("m").run(() => {});
    const isFree = async () => (await trial.values("m")).every((value) => value === null);
    await waitUntil(isFree, { what: "no node has the lock" });
    const answers = await Promise.all(copies.map((copy) => copy.replay("new")));
    for (const answer of answers) expect(answer).toMatchObject({ 0: "L" });
    expect(await trial.values("m")).toEqual([null, null, null]);
  });
});

describe("clocks", () => {
  const clocks = makeClocks();
  let trial: RedlockTrial;
  let shifted: ReturnType<NonNullable<typeof clocks>["clock"]>[];
  beforeAll(async () => {
    if (!clocks) return;
    shifted = [0, 1].map((at) => clocks.clock(`node-${at}`));
    trial = await RedlockTrial.start(5, (at) => ({ env: shifted[at]?.env ?? {} }));
  });
  afterAll(async () => {
    await trial?.[Symbol.asyncDispose]();
    clocks?.end();
  });

  it("of two of five nodes may jump back or ahead", async (context) => {
    if (!clocks) return context.skip("there is no C compiler to shift a server's clock with");
    const [a, b] = [await trial.open(), await trial.open()];
    let last = 0n;
    for (const byMs of [0, 60_000, 3_600_000, -7_200_000, 0]) {
      // A majority answers a release. The other nodes must not take its key for the next vote.
      await waitUntil(async () => (await trial.values("m")).every((value) => value === null), {
        what: "all nodes are free",
      });
      const lease = await a.locks.mutex("m").acquire({ ttlMs: 30_000 });
      assert.ok(lease.token > last, `${lease.token} after ${last}`);
      last = lease.token;
      // A holder on a bare majority may lose it with the clocks.
      await waitUntil(async () => !(await trial.values("m")).includes(null), {
        what: "all nodes voted",
      });
      for (const [at, clock] of shifted.entries()) await clock.shift(byMs, trial.server(at));
      assert.equal(await b.locks.mutex("m").tryAcquire(), null);
      lease.assertHeld();
      await lease.renew();
      assert.equal(await lease.release(), true);
      const next = await b.locks.mutex("m").acquire();
      assert.ok(next.token > last);
      last = next.token;
      assert.equal(await next.release(), true);
    }
  });
});
