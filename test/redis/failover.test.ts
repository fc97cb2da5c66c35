/**
 * Sentinel replaces the master. With `replicas`, leases survive, and a grant that cannot survive is
 * refused. Without, a lease that the new master never had is lost: its holder is told, and later
 * tokens are higher.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { Holdfast } from "../../src/api/holdfast.js";
import { ReplicationError } from "../../src/errors/index.js";
import type { Lease } from "../../src/lease/lease.js";
import { type RedisServer, untilInSync } from "../servers/redis.js";
import { type RedisSentinel, startSentinel } from "../servers/redis-sentinel.js";
import { waitUntil } from "../servers/wait-until.js";
import { libraries, openSentinel } from "./clients.js";
import { type StoreOptions, Trial } from "./trial.js";

/** Longer than any failover, so that no lease expires meanwhile. */
const LONG = { ttlMs: 60_000, storeTimeoutMs: 30_000 };

let group: RedisSentinel;
beforeAll(async () => {
  group = await startSentinel({ downAfterMs: 1_500 });
});
afterAll(() => group?.[Symbol.asyncDispose]());

/** One lock for each library: the libraries share the slow failover. */
interface Part {
  readonly trial: Trial;
  open(options?: StoreOptions): Promise<Holdfast>;
}

let parts: readonly Part[] = [];
beforeEach(() => {
  parts = libraries.map((library) => {
    const trial = new Trial(...group.servers);
    const open = async (options?: StoreOptions) =>
      trial.by(await openSentinel[library](group), options);
    return { trial, open };
  });
});
afterEach(() => each(({ trial }) => trial.close()));

function each<T>(act: (part: Part) => Promise<T>): Promise<T[]> {
  return Promise.all(parts.map(act));
}

async function currentMaster(): Promise<RedisServer> {
  const master = await group.master();
  if (!master) throw new Error("there is no master");
  return master;
}

test("a stopped replica makes grants fail, and the error counts the replicas", async () => {
  const master = await currentMaster();
  const replicas = group.servers.filter((server) => server !== master);
  const all = await each(async ({ trial, open }) => {
    const locks = await open({ replicas: 2, replicaTimeoutMs: 250 });
    await trial.turn(locks);
    return locks;
  });
  await replicas[0]?.pause();
  try {
    await Promise.all(
      parts.map(async ({ trial }, at) => {
        const refused = await trial.acquire(all[at] as Holdfast).catch((error: unknown) => error);
        expect(refused).toBeInstanceOf(ReplicationError);
        expect(refused).toMatchObject({ asked: 2, acknowledged: 1, timeoutMs: 250 });
        expect(String(refused)).toContain("Only 1 of 2 replicas had the grant within 250 ms");
      }),
    );
  } finally {
    replicas[0]?.resume();
  }
  await Promise.all(parts.map(({ trial }, at) => trial.end(all[at] as Holdfast, 5_000)));
});

test("a lease that all replicas have survives the master", async () => {
  const master = await currentMaster();
  const options = { replicas: 2, replicaTimeoutMs: 1_000 };
  const holders = await each(({ open }) => open(options));
  const others = await each(({ open }) => open());
  const leases = await Promise.all(
    parts.map(({ trial }, at) => trial.acquire(holders[at] as Holdfast, LONG)),
  );
  await master.kill();
  const next = await group.promoted(master);
  await master.start();
  await untilInSync(next, master);
  await Promise.all(
    parts.map(async ({ trial }, at) => {
      const [lease, other] = [leases[at] as Lease, others[at] as Holdfast];
      // The renewal needs two replicas again.
      const renewed = () => lease.renew(30_000).then(() => true);
      await waitUntil(renewed, { what: "the lease is renewed", everyMs: 100 });
      lease.assertHeld();
      expect(await other.mutex(trial.name).tryAcquire()).toBeNull();
      expect(await lease.release()).toBe(true);
      await trial.end(other, 5_000);
    }),
  );
});

test("a lease that no replica has is lost with the master, and tokens rise", async () => {
  const master = await currentMaster();
  const replicas = group.servers.filter((server) => server !== master);
  const holders = await each(({ open }) => open());
  const others = await each(({ open }) => open());
  await Promise.all(parts.map(({ trial }, at) => trial.turn(holders[at] as Holdfast)));
  await Promise.all(replicas.map((replica) => replica.pause()));
  // The replicas would still read data under way, so the link is cut.
  await master.ask("CLIENT", "KILL", "TYPE", "replica");
  const leases = await each(async ({ trial }) => {
    const at = parts.findIndex((part) => part.trial === trial);
    // Only the holder has seen tokens ahead of the clock.
    await trial.raiseTokens(master);
    return await trial.acquire(holders[at] as Holdfast, LONG);
  });
  await master.kill();
  for (const replica of replicas) replica.resume();
  const next = await group.promoted(master);
  await Promise.all(
    parts.map(async ({ trial }, at) => {
      const [lease, other] = [leases[at] as Lease, others[at] as Holdfast];
      await waitUntil(() => lease.signal.aborted, { what: "the holder is told of the loss" });
      expect(lease.signal.reason).toMatchObject({ reason: "missing" });
      expect(await lease.release()).toBe(false);
      // The holder's client carries its token to the new master after it has reported the loss.
      const last = async () =>
        BigInt(String(await next.ask("HGET", `{hf:${trial.namespace}}`, "")));
      await waitUntil(async () => (await last()) >= lease.token, { what: "the token arrives" });
      await trial.end(other, 5_000);
    }),
  );
});
