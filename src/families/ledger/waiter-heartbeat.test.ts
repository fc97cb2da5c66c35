import { beforeEach, describe, expect, it } from "vitest";
import { claimOf, type LedgerArbiter, LedgerServer } from "../../../test/fixtures/ledger-server.js";
import { ManualRuntime } from "../../../test/fixtures/manual-runtime.js";
import { watch } from "../../../test/fixtures/outcome.js";
import type { Claim, Grant } from "../../contract/store.js";
import { AcquireWait } from "../../lease/acquire-wait.js";
import { LedgerStore } from "./ledger-store.js";

const KEY = "l:x";
const PERIOD_MS = 5_000;
let runtime: ManualRuntime;
let server: LedgerServer;
let holder: LedgerStore;
let held: Grant;
let arbiter: LedgerArbiter;
let store: LedgerStore;

const forever = (): AcquireWait => new AcquireWait(runtime, Number.POSITIVE_INFINITY, undefined);

/** Waits with patience: the period is the offer window of a ttl of 30 s. */
const patient = (owner: string, given: Partial<Claim> = {}): Claim =>
  claimOf(owner, { storeTimeoutMs: 60_000, ...given });

beforeEach(async () => {
  runtime = new ManualRuntime();
  server = new LedgerServer(runtime);
  holder = new LedgerStore(server.connect());
  const grant = await holder.acquire(claimOf("h", { ttlMs: 600_000 }), null);
  if (grant.type !== "granted") throw new Error("not granted");
  held = grant;
  arbiter = server.connect();
  store = new LedgerStore(arbiter);
  await store.inspect("lock", "other");
});

describe("while an acquisition waits", () => {
  it("the client is heard of once a period, however many wait at that name", async () => {
    const waits = ["a", "b", "c"].map((owner) => watch(store.acquire(patient(owner), forever())));
    await runtime.advance(4 * PERIOD_MS);
    expect(arbiter.sentOf("heartbeat")).toHaveLength(4);
    expect(waits.map(({ state }) => state)).toEqual(["pending", "pending", "pending"]);
    expect(server.view(KEY).waiters).toHaveLength(3);
  });

  it("the process stays, and after that nothing is left", async () => {
    const wait = forever();
    void store.acquire(patient("a"), wait);
    await runtime.advance(7 * PERIOD_MS);
    expect(runtime.keepsAlive).toBe(true);
    wait.end("signal");
    await runtime.advance(0);
    expect(runtime.keepsAlive).toBe(false);
    const heartbeats = arbiter.sentOf("heartbeat").length;
    await runtime.advance(3 * PERIOD_MS);
    expect(arbiter.sentOf("heartbeat")).toHaveLength(heartbeats);
  });

  it("a heartbeat that failed is repeated soon: three silent periods cost the place", async () => {
    const asked = watch(store.acquire(patient("a"), forever()));
    await runtime.advance(PERIOD_MS - 1);
    arbiter.fate = "request broken";
    await runtime.advance(PERIOD_MS);
    expect(arbiter.sentOf("heartbeat").length).toBeGreaterThanOrEqual(4);
    arbiter.fate = "answered";
    await runtime.advance(30_000);
    expect(asked.state).toBe("pending");
    expect(server.view(KEY).waiters[0]?.waitedUs).toBeGreaterThan(39_000_000);
  });

  it.each([
    { ttlMs: 30_000, storeTimeoutMs: 1_000 },
    { ttlMs: 120_000, storeTimeoutMs: 10_000 },
    { ttlMs: 600_000, storeTimeoutMs: 3_000 },
  ])("a store that answers is never called silent: %o", async (times) => {
    const asked = watch(store.acquire(claimOf("a", times), forever()));
    await runtime.advance(300_000);
    expect(asked.error).toBeUndefined();
    expect(asked.state).toBe("pending");
    await holder.release(held, 1_000);
    await runtime.advance(0);
    expect(asked.value).toMatchObject({ type: "granted" });
  });

  it("one lost heartbeat does not cost the place", async () => {
    const claim = claimOf("a", { ttlMs: 2_000, storeTimeoutMs: 60_000 });
    void store.acquire(claim, forever());
    await runtime.advance(0);
    // Three periods of 2 s: the call that is lost is given up only after 5 s.
    arbiter.next("heartbeat", "request lost");
    await runtime.advance(6_500);
    expect(server.view(KEY).waiters).toMatchObject([{ waitedUs: 6_500_000 }]);
  });

  it("one lost heartbeat is no silence", async () => {
    for (const fate of ["request lost", "reply lost"] as const) {
      const asked = watch(store.acquire(claimOf(fate), forever()));
      await runtime.advance(0);
      arbiter.next("heartbeat", fate);
      await runtime.advance(60_000);
      expect(asked.state).toBe("pending");
    }
  });

  it("a store that stopped to answer is noticed within storeTimeoutMs", async () => {
    const asked = watch(store.acquire(claimOf("a"), forever()));
    await runtime.advance(60_000);
    arbiter.fate = "request lost";
    await runtime.advance(10_000);
    expect(asked.error).toMatchObject({ code: "HF_STORE", outcome: "unknown" });
  });

  it("the caller is told who is in the way, as that changes", async () => {
    const wait = forever();
    void store.acquire(patient("b"), wait);
    await runtime.advance(0);
    expect(wait.holder?.token).toBe(held.token);
    arbiter.pushes = "kept";
    await holder.release(held, 1_000);
    const stranger = { ...arbiter.sentOf("acquire")[0], owner: "s", client: "s" };
    server.do({ type: "release", key: KEY, owner: "b", tombstoneUs: 0, keep: null });
    server.do(stranger as Parameters<LedgerServer["do"]>[0]);
    await runtime.advance(PERIOD_MS);
    expect(wait.holder?.token).toBeGreaterThan(held.token);
  });
});

describe("the holder in front", () => {
  it("that is due without a word is asked after at once", async () => {
    const short = new LedgerStore(server.connect());
    await short.acquire(claimOf("h", { name: "y", ttlMs: 1_000 }), null);
    const asked = watch(store.acquire(claimOf("a", { name: "y" }), forever()));
    await runtime.advance(1_000);
    expect(asked.state).toBe("pending");
    await runtime.advance(5);
    expect(asked.value).toMatchObject({ type: "granted" });
  });

  it("is asked after by the first waiter first, and by later waiters a little later", async () => {
    const short = new LedgerStore(server.connect());
    await short.acquire(claimOf("h", { name: "y", ttlMs: 1_000 }), null);
    const arbiters = [server.connect(), server.connect(), server.connect()];
    for (const [index, one] of arbiters.entries()) {
      void new LedgerStore(one).acquire(patient(`w${index}`, { name: "y" }), forever());
      await runtime.advance(0);
    }
    const heartbeats = (): number[] => arbiters.map((one) => one.sentOf("heartbeat").length);
    await runtime.advance(1_000);
    expect(heartbeats()).toEqual([0, 0, 0]);
    await runtime.advance(1);
    expect(heartbeats()).toEqual([1, 0, 0]);
    expect(server.view("l:y").holders).toMatchObject([{ meta: '{"by":"w0"}' }]);
    await runtime.advance(10);
    expect(heartbeats()).toEqual([1, 1, 1]);
  });
});

describe("a store that lost its data", () => {
  it("is asked for all places anew", async () => {
    const asked = watch(store.acquire(patient("a"), forever()));
    await runtime.advance(0);
    server.ledger.forget();
    await runtime.advance(PERIOD_MS);
    expect(asked.value).toMatchObject({ type: "granted" });
  });

  it("gets the waiters back in its queue, each under its own owner", async () => {
    const owners = ["a", "b", "c"];
    for (const owner of owners) void store.acquire(patient(owner), forever());
    await runtime.advance(0);
    server.ledger.forget();
    const thief = new LedgerStore(server.connect());
    await thief.acquire(claimOf("t"), null);
    await runtime.advance(PERIOD_MS);
    expect(server.view(KEY).waiters).toHaveLength(3);
  });
});
