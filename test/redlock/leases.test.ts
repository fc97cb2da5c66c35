/** Leases that end, are handed off or are aborted while nodes are unreachable. */
import assert from "node:assert/strict";
import { expect, it } from "vitest";
import type { Holdfast } from "../../src/api/holdfast.js";
import { LeaseLostError, StoreError } from "../../src/errors/index.js";
import type { Lease } from "../../src/lease/lease.js";
import { Stopwatch } from "../fixtures/stopwatch.js";
import { waitUntil } from "../servers/wait-until.js";
import { RedlockTrial } from "./trial.js";

/** The key of the ballot of the lock "m". */
const BALLOT = "holdfast::b:l:m";

it("an expired handle is not resumed by new votes", async () => {
  await using trial = await RedlockTrial.start(3);
  const [a, b] = [await trial.open(), await trial.open()];
  const lease = await a.locks.mutex("m").acquire({ transferable: true, ttlMs: 4_000 });
  await waitUntil(async () => (await trial.values("m")).every((value) => value !== null), {
    what: "all nodes voted",
  });
  const handle = lease.detach();
  // One node keeps the lease much longer than the other nodes, like after a clock jump.
  await trial.server(0).ask("PEXPIRE", "m", "60000");
  await waitUntil(async () => (await trial.values("m")).slice(1).every((value) => value === null), {
    what: "a majority let it expire",
  });
  expect(await b.locks.resume(handle)).toBe(null);
  const [, second, third] = await trial.values("m");
  expect([second, third], "nothing was taken again").toEqual([null, null]);
});

/**
 * Acquires a lease for which all nodes have voted. A node whose vote comes too late for its round
 * keeps another ballot, or is repaired by a renewal: then it does not count for a resume.
 */
async function acquireOfAll(trial: RedlockTrial, locks: Holdfast): Promise<Lease> {
  for (;;) {
    const lease = await locks.mutex("m").acquire({ transferable: true });
    const isVoted = new RegExp(`^\\d+ H \\S+ ${lease.token} `);
    const haveAllVoted = async (): Promise<boolean> => {
      const ballots = await Promise.all(trial.servers.map((one) => one.ask("GET", BALLOT)));
      return ballots.every((ballot) => isVoted.test(String(ballot)));
    };
    const voted = waitUntil(haveAllVoted, { what: "the votes of all nodes", timeoutMs: 2_000 });
    if (
      await voted.then(
        () => true,
        () => false,
      )
    )
      return lease;
    await lease.release();
  }
}

it("a handle is resumed while a majority has kept its lease", async () => {
  await using trial = await RedlockTrial.start(3);
  const [a, b] = [await trial.open(), await trial.open()];
  const lease = await acquireOfAll(trial, a.locks);
  const handle = lease.detach();
  await trial.server(2).ask("DEL", "m");
  const resumed = await b.locks.resume(handle);
  assert.equal(resumed?.token, lease.token);
  // From then on the lease is renewed like any other, and repaired at all nodes.
  await resumed?.renew();
  await waitUntil(async () => (await trial.values("m"))[2] !== null, { what: "a repair" });
  assert.equal(await resumed?.release(), true);
});

it("an unheard revocation is reported as soon as nodes show another holder", async () => {
  await using trial = await RedlockTrial.start(3);
  const [a, b] = [await trial.open({ proxied: true }), await trial.open()];
  await a.locks.mutex("warm").run(() => {});
  const lease = await a.locks.mutex("m").acquire({ ttlMs: 60_000 });
  for (const proxy of a.proxies) proxy.cut();
  assert.equal(await b.locks.revoke("m", { token: lease.token, reason: "test" }), true);
  // The new holder replaces the mark of the revocation.
  const next = await b.locks.mutex("m").acquire();
  await waitUntil(async () => new Set(await trial.values("m")).size === 1, {
    what: "all nodes voted",
  });
  lease.assertHeld();
  await Promise.all(a.proxies.map((proxy) => proxy.heal()));
  const stopwatch = new Stopwatch();
  await waitUntil(() => lease.signal.aborted, { what: "the holder is told of the loss" });
  stopwatch.expectLessThan(10_000, "long before its next renewal");
  assert.ok(lease.signal.reason instanceof LeaseLostError);
  expect(lease.signal.reason.reason).toBe("replaced");
  assert.equal(await next.release(), true);
});

it("an aborted acquire does not wait for nodes that are asked for the longest lease", async () => {
  await using trial = await RedlockTrial.start(3);
  const { locks } = await trial.open({ nodeTimeoutMs: 400 });
  await locks.mutex("warm").run(() => {});
  const silent = [trial.server(1), trial.server(2)];
  await Promise.all(silent.map((server) => server.pause()));
  try {
    const stopwatch = new Stopwatch();
    // An acquire with turns would wait in this process instead.
    const options = { ttlMs: 90_000, waitMs: 50, fairness: "strict" } as const;
    const waiting = locks.mutex("m").acquire(options);
    await assert.rejects(waiting, StoreError);
    // The last attempt takes at most two seconds, and leaving takes two node timeouts.
    stopwatch.expectLessThan(4_000);
  } finally {
    await Promise.all(silent.map((server) => server.resume()));
  }
});
