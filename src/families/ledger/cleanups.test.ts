import { beforeEach, describe, expect, it } from "vitest";
import { claimOf, type LedgerArbiter, LedgerServer } from "../../../test/fixtures/ledger-server.js";
import { ManualRuntime } from "../../../test/fixtures/manual-runtime.js";
import { watch } from "../../../test/fixtures/outcome.js";
import type { Grant } from "../../contract/store.js";
import { StoreError } from "../../errors/index.js";
import { AcquireWait } from "../../lease/acquire-wait.js";
import { LedgerStore } from "./ledger-store.js";

const KEY = "l:x";
let runtime: ManualRuntime;
let server: LedgerServer;
let arbiter: LedgerArbiter;
let store: LedgerStore;

const waitFor = (waitMs: number): AcquireWait => new AcquireWait(runtime, waitMs, undefined);

/** Another client takes the lock. */
async function occupy(): Promise<{ other: LedgerStore; grant: Grant }> {
  const other = new LedgerStore(server.connect());
  const grant = await other.acquire(claimOf("other"), null);
  if (grant.type !== "granted") throw new Error("not granted");
  return { other, grant };
}

beforeEach(async () => {
  runtime = new ManualRuntime();
  server = new LedgerServer(runtime);
  arbiter = server.connect();
  store = new LedgerStore(arbiter);
  await store.inspect("lock", "other");
});

describe("an acquire that does not wait", () => {
  it("is told who holds, and leaves nothing", async () => {
    const { grant } = await occupy();
    const busy = await store.acquire(claimOf("a"), null);
    expect(busy).toMatchObject({ type: "busy", holder: { token: grant.token } });
    expect(arbiter.sent.at(-1)?.type).toBe("acquire");
    expect(server.view(KEY).waiters).toEqual([]);
    expect(runtime.keepsAlive).toBe(false);
  });
});

describe("an acquire that gives up", () => {
  it("leaves the queue, without a tombstone where all was answered", async () => {
    await occupy();
    const asked = watch(store.acquire(claimOf("a"), waitFor(1_000)));
    await runtime.advance(999);
    expect(server.view(KEY).waiters).toHaveLength(1);
    await runtime.advance(1);
    expect(asked.value).toMatchObject({ type: "busy" });
    expect(arbiter.sentOf("release")).toMatchObject([{ owner: "a", tombstoneUs: 0 }]);
    expect(server.view(KEY).waiters).toEqual([]);
  });

  it("while the answer is under way is withdrawn with a tombstone", async () => {
    arbiter.latencyMs = 40;
    const asked = watch(store.acquire(claimOf("a"), waitFor(10)));
    await runtime.advance(10);
    expect(asked.value).toMatchObject({ type: "busy" });
    await runtime.advance(100);
    const [request] = arbiter.sentOf("acquire");
    const [release] = arbiter.sentOf("release");
    expect(release?.tombstoneUs).toBeGreaterThan(request?.notAfterUs ?? Number.NaN);
    expect(server.view(KEY)).toMatchObject({ holders: [], waiters: [] });
  });

  it("before the first word was sent sends none", async () => {
    const wait = waitFor(1_000);
    wait.end("signal");
    expect(await store.acquire(claimOf("a"), wait)).toMatchObject({ type: "busy" });
    expect(arbiter.sent.map(({ type }) => type)).toEqual(["inspect"]);
  });

  it("is withdrawn again and again until the store answers", async () => {
    await occupy();
    const asked = watch(store.acquire(claimOf("a"), waitFor(1_000)));
    await runtime.advance(900);
    arbiter.fate = "request broken";
    await runtime.advance(2_000);
    expect(asked.state).toBe("resolved");
    expect(arbiter.sentOf("release").length).toBeGreaterThan(3);
    arbiter.fate = "answered";
    await runtime.advance(1_000);
    expect(server.view(KEY).waiters).toEqual([]);
    const tries = arbiter.sentOf("release").length;
    await runtime.advance(10_000);
    expect(arbiter.sentOf("release")).toHaveLength(tries);
  });
});

describe("a withdrawal", () => {
  it("that the store will never take is not repeated", async () => {
    await occupy();
    const asked = watch(store.acquire(claimOf("a"), waitFor(1_000)));
    await runtime.advance(900);
    arbiter.fate = new StoreError("Not allowed", { outcome: "not_applied", retryable: false });
    await runtime.advance(10_000);
    expect(asked.state).toBe("resolved");
    expect(arbiter.sentOf("release")).toHaveLength(1);
  });
});

describe("an acquire that fails", () => {
  it.each(["request lost", "reply lost"] as const)(
    "by a %s is withdrawn, and buried",
    async (fate) => {
      arbiter.fate = fate;
      const asked = watch(store.acquire(claimOf("a", { storeTimeoutMs: 2_000 }), waitFor(60_000)));
      await runtime.advance(2_000);
      expect(asked.state).toBe("rejected");
      arbiter.fate = "answered";
      await runtime.advance(10_000);
      const [request] = arbiter.sentOf("acquire");
      const last = arbiter.sentOf("release").at(-1);
      expect(last?.owner).toBe("a");
      expect(last?.tombstoneUs).toBeGreaterThan(request?.notAfterUs ?? Number.NaN);
      expect(server.view(KEY).holders).toEqual([]);
    },
  );

  it("for good is withdrawn likewise: the refusal may have come too late", async () => {
    const error = new StoreError("Odd", { outcome: "unknown", retryable: false });
    arbiter.next("acquire", error);
    const asked = watch(store.acquire(claimOf("a"), waitFor(60_000)));
    await runtime.advance(10);
    expect(asked.error).toBe(error);
    expect(arbiter.sentOf("release")).toMatchObject([{ owner: "a" }]);
    expect(arbiter.sentOf("release")[0]?.tombstoneUs).toBeGreaterThan(server.at.us);
  });
});

describe("in the end", () => {
  it("no timer is left, and nothing keeps the process alive", async () => {
    const { other, grant } = await occupy();
    const asked = watch(store.acquire(claimOf("a"), waitFor(Number.POSITIVE_INFINITY)));
    await runtime.advance(100);
    expect(runtime.keepsAlive).toBe(true);
    await other.release(grant, 1_000);
    await runtime.advance(100);
    if (asked.value?.type !== "granted") throw new Error("not granted");
    await runtime.advance(6_000);
    expect(runtime.keepsAlive).toBe(false);
    await store.release(asked.value, 1_000);
    await runtime.advance(10_000);
    expect(runtime.alarms).toBe(0);
    expect(server.ledger.size).toBe(0);
  });
});
