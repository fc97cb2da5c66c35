import { beforeEach, describe, expect, it } from "vitest";
import { claimOf, type LedgerArbiter, LedgerServer } from "../../../test/fixtures/ledger-server.js";
import { ManualRuntime } from "../../../test/fixtures/manual-runtime.js";
import { watch } from "../../../test/fixtures/outcome.js";
import { StoreError } from "../../errors/index.js";
import { AcquireWait } from "../../lease/acquire-wait.js";
import { marginMs } from "../../rules/margin.js";
import { LedgerStore } from "./ledger-store.js";

const KEY = "l:x";
let runtime: ManualRuntime;
let server: LedgerServer;
let arbiter: LedgerArbiter;
let store: LedgerStore;

const forever = (): AcquireWait => new AcquireWait(runtime, Number.POSITIVE_INFINITY, undefined);

beforeEach(async () => {
  runtime = new ManualRuntime();
  server = new LedgerServer(runtime);
  arbiter = server.connect();
  store = new LedgerStore(arbiter);
  await store.inspect("lock", "other");
});

describe("the deadline", () => {
  it("counts from the moment the answered request was sent", async () => {
    arbiter.latencyMs = 100;
    const asked = watch(store.acquire(claimOf("a"), null));
    await runtime.advance(200);
    expect(asked.value).toMatchObject({ deadlineMs: 1_000 + 30_000 - marginMs(30_000) });
  });

  it("of a repeated request is that of the older grant", async () => {
    arbiter.next("acquire", "reply lost");
    const asked = watch(store.acquire(claimOf("a"), null));
    await runtime.advance(6_000);
    expect(arbiter.sentOf("acquire")).toHaveLength(2);
    expect(asked.value).toMatchObject({ deadlineMs: 1_000 + 30_000 - marginMs(30_000) });
  });
});

describe("a lost reply", () => {
  it("is asked for again, and the token is the same", async () => {
    arbiter.next("acquire", "reply broken");
    const asked = watch(store.acquire(claimOf("a"), null));
    await runtime.advance(0);
    const [held] = server.view(KEY).holders;
    expect(asked.state).toBe("pending");
    await runtime.advance(50);
    expect(asked.value).toMatchObject({ type: "granted", token: BigInt(held?.token ?? 0) });
    expect(server.view(KEY).holders).toHaveLength(1);
  });

  it("makes the release leave a tombstone beyond every request of this owner", async () => {
    arbiter.next("acquire", "reply broken");
    const asked = watch(store.acquire(claimOf("a"), null));
    await runtime.advance(50);
    if (asked.value?.type !== "granted") throw new Error("not granted");
    const released = store.release(asked.value, 1_000);
    await runtime.advance(0);
    expect(await released).toBe(true);
    const copies = arbiter.sentOf("acquire");
    const latestUs = Math.max(...copies.map(({ notAfterUs }) => notAfterUs));
    expect(arbiter.sentOf("release")[0]?.tombstoneUs).toBeGreaterThan(latestUs);
    server.aheadMs += (latestUs - server.at.us) / 1000;
    for (const copy of copies) expect(server.do(copy)).toMatchObject({ type: "stale" });
  });

  it("is none where one request had one answer: nothing is buried", async () => {
    const grant = await store.acquire(claimOf("a"), null);
    if (grant.type !== "granted") throw new Error("not granted");
    await store.release(grant, 1_000);
    expect(arbiter.sentOf("release")).toMatchObject([{ tombstoneUs: 0 }]);
    expect(server.ledger.size).toBe(0);
  });

  it("is suspected where the connection changed under way", async () => {
    arbiter.next("acquire", "answered twice");
    const grant = await store.acquire(claimOf("a"), null);
    if (grant.type !== "granted") throw new Error("not granted");
    await store.release(grant, 1_000);
    expect(arbiter.sentOf("release")[0]?.tombstoneUs).toBeGreaterThan(server.at.us);
  });
});

describe("a grant that comes after its deadline", () => {
  it("is given back, never returned, and asked for under another owner", async () => {
    arbiter.latencyMs = 60;
    const asked = watch(store.acquire(claimOf("a", { ttlMs: 100 }), forever()));
    await runtime.advance(119);
    arbiter.latencyMs = 10;
    await runtime.advance(200);
    expect(asked.value).toMatchObject({ type: "granted" });
    const [late, second] = arbiter.sentOf("acquire");
    expect(arbiter.sentOf("release")).toMatchObject([{ owner: late?.owner }]);
    expect(asked.value).toMatchObject({ claim: { owner: second?.owner } });
    expect(second?.owner).not.toBe(late?.owner);
  });

  it("again and again means that the ttl is too short for this store", async () => {
    arbiter.latencyMs = 60;
    const asked = watch(store.acquire(claimOf("a", { ttlMs: 100 }), forever()));
    await runtime.advance(2_000);
    expect(asked.error).toBeInstanceOf(StoreError);
    expect(asked.error).toMatchObject({ outcome: "not_applied" });
    expect((asked.error as Error).message).toContain("raise ttlMs");
    expect(server.view(KEY).holders).toEqual([]);
  });

  it("is told even where the store never lets it get that far", async () => {
    for (const wait of [null, forever()]) {
      const slow = server.connect();
      slow.latencyMs = 60;
      const asked = watch(new LedgerStore(slow).acquire(claimOf("b", { ttlMs: 100 }), wait));
      await runtime.advance(5_000);
      expect(asked.error).toMatchObject({ code: "HF_STORE", outcome: "not_applied" });
    }
  });
});

describe("a clock that steps", () => {
  it.each([60_000, -60_000])("by %d ms costs one more request at most", async (stepMs) => {
    server.aheadMs += stepMs;
    const asked = watch(store.acquire(claimOf("a"), null));
    await runtime.advance(1);
    expect(asked.value).toMatchObject({ type: "granted" });
    expect(arbiter.sentOf("acquire").length).toBeLessThanOrEqual(2);
  });
});

describe("a failure", () => {
  it("that may pass is tried again, ever less often", async () => {
    arbiter.fate = "request broken";
    const asked = watch(store.acquire(claimOf("a"), null));
    await runtime.advance(5_000);
    expect(arbiter.sentOf("acquire").length).toBeGreaterThan(5);
    expect(arbiter.sentOf("acquire").length).toBeLessThan(20);
    arbiter.fate = "answered";
    await runtime.advance(1_000);
    expect(asked.value).toMatchObject({ type: "granted" });
  });

  it("keeps the process alive for a call that waits, but not for a try", async () => {
    arbiter.fate = "request broken";
    const wait = forever();
    for (const one of [null, wait]) {
      watch(store.acquire(claimOf("a"), one));
      await runtime.advance(1);
      expect(runtime.keepsAlive).toBe(one !== null);
    }
    wait.end("closed");
    await runtime.advance(1);
    expect(runtime.keepsAlive).toBe(false);
  });

  it("that will not pass is told at once", async () => {
    const error = new StoreError("Not allowed", { outcome: "not_applied", retryable: false });
    arbiter.next("acquire", error);
    const asked = watch(store.acquire(claimOf("a"), forever()));
    await runtime.advance(0);
    expect(asked.error).toBe(error);
    expect(arbiter.sentOf("acquire")).toHaveLength(1);
  });

  it("is told after storeTimeoutMs of silence, with the last failure as its cause", async () => {
    arbiter.fate = "request broken";
    const asked = watch(store.acquire(claimOf("a", { storeTimeoutMs: 3_000 }), forever()));
    await runtime.advance(2_999);
    expect(asked.state).toBe("pending");
    await runtime.advance(1);
    expect(asked.error).toMatchObject({ code: "HF_STORE", outcome: "unknown" });
    expect((asked.error as Error).message).toContain("silent for 3000 ms");
    expect((asked.error as Error).cause).toBeInstanceOf(StoreError);
  });

  it("is told in time also where no call ever settles", async () => {
    arbiter.fate = "request lost";
    const asked = watch(store.acquire(claimOf("a"), forever()));
    await runtime.advance(10_000);
    expect(asked.error).toMatchObject({ outcome: "unknown" });
  });

  it("is told in time also where the store never answered at all", async () => {
    const deaf = server.connect();
    deaf.fate = "request lost";
    const asked = watch(new LedgerStore(deaf).acquire(claimOf("a"), forever()));
    await runtime.advance(10_000);
    expect(asked.error).toMatchObject({ outcome: "unknown" });
    expect(deaf.sent).toEqual([]);
  });

  it("is not told to a process that was stopped before the store gets its chance", async () => {
    arbiter.latencyMs = 5;
    const asked = watch(store.acquire(claimOf("a"), forever()));
    await runtime.advance(1);
    runtime.block(60_000);
    await runtime.advance(300);
    expect(asked.value).toMatchObject({ type: "granted" });
  });
});
