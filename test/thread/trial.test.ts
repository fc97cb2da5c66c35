/**
 * Leases that a thread renews: event loops that are blocked for three times the ttl, stuck for
 * good, or gone, and a thread that ends. The full run blocks ten times in a row.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect } from "../../src/api/connect.js";
import type { Holdfast } from "../../src/api/holdfast.js";
import type { ConnectOptions } from "../../src/index.js";
import { type ControlledProcess, startProcess } from "../faults/process.js";
import { isFull } from "../fixtures/depth.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";

/** Long enough that a busy machine does not miss the renewals of a thread. */
const TTL_MS = 2_000;
/** A lease that certainly did not expire by itself during a test. */
const LONG_MS = 600_000;
const BLOCKS = isFull ? 10 : 2;

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server?.close());

const machineMs = (): number => Number(process.hrtime.bigint()) / 1e6;

interface HolderOptions extends ConnectOptions {
  readonly blocks?: number;
  readonly blockMs?: number;
}

let trials = 0;

/** A lock in a namespace of its own, with a client of this process and holders elsewhere. */
function trial() {
  trials += 1;
  const url = `${server.url}?namespace=thread-${trials}`;
  const holder = (verb: string, options: HolderOptions) =>
    startProcess(new URL("./holder.mjs", import.meta.url), {
      args: [url, verb, JSON.stringify({ thread: true, ...options })],
    });
  return { url, holder };
}

async function untilWaiting(locks: Holdfast, name: string): Promise<void> {
  const isWaiting = async () => (await locks.inspect(name)).waiters.length === 1;
  await waitUntil(isWaiting, { what: "a waiter" });
}

/** The lines that a process wrote with `note`. */
function notesOf(child: ControlledProcess): { readonly heldMs?: number }[] {
  const lines = child.logTail().split("\n");
  return lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
}

/** A grant of the watch: asked for and answered at these times, by the clock of the machine. */
interface Grant {
  readonly token: bigint;
  readonly askedMs: number;
  readonly answeredMs: number;
}

/** One lease of the holder, which looks at it after each block. */
interface HeldLease {
  readonly token: string;
  readonly grantedMs: number;
  readonly looks: readonly { readonly state: string; readonly isTold: boolean }[];
  readonly releasingMs: number;
  readonly released: boolean;
}

/** Tries to take the lock until it is told to stop; notes what it was granted. */
async function watch(locks: Holdfast, signal: AbortSignal, grants: Grant[]): Promise<void> {
  while (!signal.aborted) {
    const askedMs = machineMs();
    const lease = await locks.mutex("m").tryAcquire();
    if (lease) grants.push({ token: lease.token, askedMs, answeredMs: machineMs() });
    await lease?.release();
    await sleep(10);
  }
}

describe.concurrent("an event loop that is blocked for three times the ttl", () => {
  /**
   * The watch goes on after each release, and sees grants then. A grant that was answered before
   * the release was sent is one beside the holder; so is one after which the store does not know
   * the holder any more.
   */
  async function blocked(thread: boolean) {
    const { url, holder } = trial();
    await using locks = await connect(url);
    const options = { thread, ttlMs: TTL_MS, blocks: BLOCKS, blockMs: 3 * TTL_MS };
    await using child = holder("block", options);
    await child.receive<object>((message) => "isHeld" in message);
    const end = new AbortController();
    const grants: Grant[] = [];
    const watched = watch(locks, end.signal, grants);
    const leases: HeldLease[] = [];
    for (let looks = 0; looks < BLOCKS; ) {
      const lease = await child.receive<HeldLease>((message) => "releasingMs" in message);
      leases.push(lease);
      looks += lease.looks.length;
    }
    const last = leases.at(-1)?.releasingMs ?? 0;
    const isGranted = async () => grants.some(({ answeredMs }) => answeredMs > last);
    await waitUntil(isGranted, { what: "the watch sees a grant after the release" });
    end.abort();
    await watched;
    return leases.map((lease) => ({
      ...lease,
      meanwhile: grants.filter(
        ({ askedMs, answeredMs }) => lease.grantedMs < askedMs && answeredMs < lease.releasingMs,
      ),
      later: grants.filter(({ answeredMs }) => answeredMs >= lease.releasingMs),
    }));
  }

  it("keeps its lease, by a thread, and no other process gets it before its release", async () => {
    const leases = await blocked(true);
    expect(leases).toHaveLength(1);
    for (const { token, looks, released, meanwhile, later } of leases) {
      expect(looks).toEqual(Array(BLOCKS).fill({ state: "held", isTold: false }));
      expect(released).toBe(true);
      expect(meanwhile).toEqual([]);
      for (const grant of later) expect(grant.token).toBeGreaterThan(BigInt(token));
    }
  });

  it("loses each lease without one, and the first look tells it", async () => {
    const leases = await blocked(false);
    expect(leases).toHaveLength(BLOCKS);
    for (const { token, looks, released, meanwhile } of leases) {
      expect(looks).toEqual([{ state: "lost", isTold: true }]);
      expect(released).toBe(false);
      expect(meanwhile.length).toBeGreaterThan(0);
      for (const grant of meanwhile) expect(grant.token).toBeGreaterThan(BigInt(token));
    }
  });
});

describe.concurrent("a thread", () => {
  it("ends the lease of a stuck event loop at maxHoldMs", async () => {
    const { url, holder } = trial();
    await using locks = await connect(url);
    await using child = holder("lose", { ttlMs: LONG_MS, maxHoldMs: 1_500 });
    await child.receive<{ token: string }>(({ token }) => token !== undefined);
    const next = await locks.mutex("m").acquire();
    const grantedMs = machineMs();
    const lost = await child.receive<{ heldMs: number }>(({ heldMs }) => heldMs !== undefined);
    expect(lost).toMatchObject({ state: "lost", error: { reason: "max_hold" } });
    expect(lost.heldMs).toBeLessThan(grantedMs);
    await next.release();
  });

  it("tells a revocation to the first look of a blocked event loop, with its reason", async () => {
    const { url, holder } = trial();
    await using locks = await connect(url);
    await using child = holder("lose", { ttlMs: LONG_MS });
    const { token } = await child.receive<{ token: string }>((message) => "token" in message);
    expect(await locks.revoke("m", { token: BigInt(token), reason: "stuck" })).toBe(true);
    const lost = await child.receive<object>((message) => "heldMs" in message);
    const error = { code: "HF_LEASE_LOST", reason: "revoked", detail: "stuck" };
    expect(lost).toMatchObject({ state: "lost", error, aborted: error });
  });

  it("does not renew a lease past a stop of the whole process", async () => {
    const { url, holder } = trial();
    await using locks = await connect(url);
    await using child = holder("lose", { ttlMs: TTL_MS });
    await child.receive<{ token: string }>(({ token }) => token !== undefined);
    await child.pause();
    const next = await locks.mutex("m").acquire();
    const grantedMs = machineMs();
    child.resume();
    const lost = await child.receive<{ heldMs: number }>(({ heldMs }) => heldMs !== undefined);
    expect(lost).toMatchObject({ state: "lost", error: { code: "HF_LEASE_LOST" } });
    expect(lost.heldMs).toBeLessThan(grantedMs);
    expect(await next.release()).toBe(true);
  });

  it("gives up a grant that its event loop does not take, and asks again", async () => {
    const { url, holder } = trial();
    await using locks = await connect(url);
    const first = await locks.mutex("m").acquire();
    const blockMs = 4 * TTL_MS;
    await using child = holder("wait", { ttlMs: TTL_MS, blockMs });
    await untilWaiting(locks, "m");
    await child.send({ block: true });
    await child.receive<object>((message) => "blocking" in message);
    await first.release();
    const between = await locks.mutex("m").acquire({ ttlMs: LONG_MS });
    const grantedMs = machineMs();
    const { unblockedMs } = await child.receive<{ unblockedMs: number }>(
      (message) => "unblockedMs" in message,
    );
    expect(grantedMs).toBeLessThan(unblockedMs);
    await between.release();
    const late = await child.receive<{ token: string; state: string }>(
      (message) => "token" in message,
    );
    expect(late.state).toBe("held");
    expect(BigInt(late.token)).toBeGreaterThan(between.token);
  });

  it.each([
    ["exit", 3],
    ["fail", 1],
    ["end", 0],
  ])(
    "releases what a process holds that ends by itself, which is lost there first: %s",
    async (verb, code) => {
      const { url, holder } = trial();
      await using locks = await connect(url);
      await using child = holder(verb, { ttlMs: LONG_MS });
      await child.receive<{ token: string }>(({ token }) => token !== undefined);
      // The lease would live for ten minutes.
      const next = await locks.mutex("m").acquire();
      const grantedMs = machineMs();
      expect(await child.exited).toMatchObject({ code });
      const [before, after] = notesOf(child);
      expect(before).toEqual({ stateBefore: "held" });
      const error = { code: "HF_LEASE_LOST", reason: "session_ended", detail: "the process exits" };
      expect(after).toMatchObject({ state: "lost", error });
      expect(after?.heldMs).toBeLessThan(grantedMs);
      await next.release();
    },
  );

  it("sends a release before the exit of its process", async () => {
    const { url, holder } = trial();
    await using locks = await connect(url);
    await using child = holder("release", { ttlMs: LONG_MS });
    await child.exited;
    expect((await locks.inspect("m")).holders).toEqual([]);
  });

  it("withdraws the waiters of a process that exits", async () => {
    const { url, holder } = trial();
    await using locks = await connect(url);
    const taken = await locks.mutex("taken").acquire({ ttlMs: LONG_MS });
    await using child = holder("withdraw", { ttlMs: LONG_MS });
    await untilWaiting(locks, "taken");
    await child.send({ exit: true });
    await child.exited;
    expect((await locks.inspect("taken")).waiters).toEqual([]);
    await taken.release();
  });

  it("leaves the lease of a killed process to its expiry", async () => {
    const { url, holder } = trial();
    await using locks = await connect(url);
    await using child = holder("lose", { ttlMs: TTL_MS });
    await child.receive<{ token: string }>(({ token }) => token !== undefined);
    await child.kill();
    await (await locks.mutex("m").acquire()).release();
  });

  it("that ends by force fails its calls, and its leases end at their deadlines", async () => {
    const { url, holder } = trial();
    await using locks = await connect(url);
    const taken = await locks.mutex("taken").acquire({ ttlMs: LONG_MS });
    await using child = holder("terminate", { ttlMs: 3 * TTL_MS });
    const failure = { name: "StoreError", code: "HF_STORE", retryable: false };
    const seen = await child.receive<object>((message) => "pending" in message);
    expect(seen).toMatchObject({
      stateAfter: "held",
      pending: failure,
      next: failure,
      lost: { code: "HF_LEASE_LOST", reason: "expired" },
      isOpen: true,
    });
    await (await locks.mutex("m").acquire()).release();
    await taken.release();
  });
});
