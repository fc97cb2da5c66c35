import { beforeEach, describe, expect, it } from "vitest";
import { claimOf, type LedgerArbiter, LedgerServer } from "../../../test/fixtures/ledger-server.js";
import { ManualRuntime, settled } from "../../../test/fixtures/manual-runtime.js";
import { type Watched, watch } from "../../../test/fixtures/outcome.js";
import type { Busy, Grant } from "../../contract/store.js";
import { AcquireWait } from "../../lease/acquire-wait.js";
import { marginMs } from "../../rules/margin.js";
import { LedgerStore } from "./ledger-store.js";

const KEY = "l:x";
const OFFER_MS = 5_000;
let runtime: ManualRuntime;
let server: LedgerServer;
let holder: LedgerStore;
let held: Grant;
let arbiter: LedgerArbiter;
let store: LedgerStore;

const forever = (): AcquireWait => new AcquireWait(runtime, Number.POSITIVE_INFINITY, undefined);
const handOver = (): Promise<boolean> => holder.release(held, 1_000);

async function queueUp(owner = "w"): Promise<Watched<Grant | Busy>> {
  const asked = watch(store.acquire(claimOf(owner, { storeTimeoutMs: 60_000 }), forever()));
  await runtime.advance(2 * arbiter.latencyMs);
  return asked;
}

beforeEach(async () => {
  runtime = new ManualRuntime();
  server = new LedgerServer(runtime);
  holder = new LedgerStore(server.connect());
  const grant = await holder.acquire(claimOf("h"), null);
  if (grant.type !== "granted") throw new Error("not granted");
  held = grant;
  arbiter = server.connect();
  store = new LedgerStore(arbiter);
  await store.inspect("lock", "other");
});

describe("a pushed grant", () => {
  it("that is fresh is believed at once, after its confirm was sent", async () => {
    arbiter.latencyMs = 10;
    const asked = await queueUp();
    let confirmsBefore = -1;
    void asked.promise.then(() => {
      confirmsBefore = arbiter.sentOf("confirm").length;
    });
    await handOver();
    await runtime.advance(10);
    expect(asked.value).toMatchObject({ type: "granted" });
    expect(confirmsBefore).toBe(1);
    const grant = asked.value as Grant;
    expect(grant.deadlineMs).toBeLessThan(runtime.nowMs + OFFER_MS);
    await runtime.advance(20);
    expect(grant.deadlineMs).toBeCloseTo(runtime.nowMs - 20 + 30_000 - marginMs(30_000), 6);
  });

  it("that was slow is believed only when its confirm is answered", async () => {
    const asked = await queueUp();
    arbiter.latencyMs = 200;
    await handOver();
    await runtime.advance(200);
    expect(arbiter.sentOf("confirm")).toHaveLength(1);
    expect(asked.state).toBe("pending");
    const sentMs = runtime.nowMs;
    await runtime.advance(400);
    expect(asked.value).toMatchObject({ deadlineMs: sentMs + 30_000 - marginMs(30_000) });
  });

  it("is believed only when confirmed, where the store demands it", async () => {
    arbiter.believesPushes = false;
    store = new LedgerStore(arbiter);
    await store.inspect("lock", "other");
    arbiter.latencyMs = 10;
    const asked = await queueUp();
    await handOver();
    await runtime.advance(29);
    expect(asked.state).toBe("pending");
    await runtime.advance(1);
    expect(asked.value).toMatchObject({ type: "granted" });
  });

  it("is believed only when confirmed, where its offer is too short to be of use", async () => {
    arbiter.latencyMs = 10;
    const claim = claimOf("w", { minUsefulMs: OFFER_MS });
    const asked = watch(store.acquire(claim, forever()));
    await runtime.advance(20);
    await handOver();
    await runtime.advance(29);
    expect(asked.state).toBe("pending");
    await runtime.advance(1);
    expect((asked.value as Grant).deadlineMs).toBeGreaterThan(runtime.nowMs + 25_000);
  });

  it("wins over the answer to its own request", async () => {
    arbiter.next("acquire", "reply lost");
    const asked = await queueUp();
    await handOver();
    await runtime.advance(0);
    expect(asked.value).toMatchObject({ type: "granted" });
    await store.release(asked.value as Grant, 1_000);
    const [request] = arbiter.sentOf("acquire");
    const [release] = arbiter.sentOf("release");
    expect(release?.tombstoneUs).toBeGreaterThan(request?.notAfterUs ?? Number.NaN);
  });

  it("that comes twice counts once", async () => {
    arbiter.pushes = "doubled";
    const asked = await queueUp();
    await handOver();
    await runtime.advance(100);
    expect(asked.value).toMatchObject({ type: "granted" });
    expect(arbiter.sentOf("confirm")).toHaveLength(1);
    expect(arbiter.sentOf("release")).toEqual([]);
    expect(server.view(KEY).holders).toHaveLength(1);
  });

  it("for an owner that asks for nothing any more is given back at once", async () => {
    const asked = await queueUp("gone");
    const [request] = arbiter.sentOf("acquire");
    if (request) server.do({ ...request, owner: "stranger" });
    await handOver();
    await runtime.advance(0);
    await store.release(asked.value as Grant, 1_000);
    await runtime.advance(0);
    expect(arbiter.sentOf("release").map(({ owner }) => owner)).toEqual(["gone", "stranger"]);
    expect(server.view(KEY).holders).toEqual([]);
  });

  it("that comes late spares a lease that this client detached", async () => {
    arbiter.pushes = "kept";
    const asked = await queueUp();
    await handOver();
    // Another answer brings the grant.
    await runtime.advance(OFFER_MS);
    const grant = asked.value as Grant;
    store.detach(grant);
    const resumed = await holder.resume(grant.claim, grant.token);
    for (const push of arbiter.kept) arbiter.onPush(push);
    await runtime.advance(10);
    expect(resumed?.token).toBe(grant.token);
    expect(arbiter.sentOf("release")).toEqual([]);
    expect(server.view(KEY).holders).toMatchObject([{ token: Number(grant.token) }]);
  });

  it("for an owner that gave up while it was under way goes back, too", async () => {
    const wait = forever();
    const asked = watch(store.acquire(claimOf("w"), wait));
    await runtime.advance(0);
    arbiter.pushes = "kept";
    await handOver();
    arbiter.next("release", "request lost");
    wait.end("signal");
    await runtime.advance(0);
    expect(asked.value).toMatchObject({ type: "busy" });
    expect(server.view(KEY).holders).toHaveLength(1);
    for (const push of arbiter.kept) arbiter.onPush(push);
    await runtime.advance(0);
    expect(server.view(KEY).holders).toEqual([]);
  });
});

describe("a confirm", () => {
  it("without an answer is repeated, and belief ends with the offer until it has one", async () => {
    const asked = await queueUp();
    arbiter.fate = "request broken";
    await handOver();
    await runtime.advance(0);
    const grant = asked.value as Grant;
    const claimEndMs = grant.deadlineMs;
    await runtime.advance(2_000);
    expect(arbiter.sentOf("confirm").length).toBeGreaterThan(3);
    expect(grant.deadlineMs).toBe(claimEndMs);
    arbiter.fate = "answered";
    await runtime.advance(2_500);
    expect(grant.deadlineMs).toBeGreaterThan(claimEndMs + 20_000);
    expect(grant.loss).toBeNull();
  });

  it("is not repeated beyond the offer", async () => {
    await queueUp();
    arbiter.fate = "request broken";
    await handOver();
    await runtime.advance(OFFER_MS);
    const tries = arbiter.sentOf("confirm").length;
    await runtime.advance(60_000);
    expect(arbiter.sentOf("confirm")).toHaveLength(tries);
  });

  it("is not repeated for a lease that was released", async () => {
    const asked = await queueUp();
    arbiter.next("confirm", "request broken");
    await handOver();
    await runtime.advance(0);
    await store.release(asked.value as Grant, 1_000);
    await runtime.advance(10_000);
    expect(arbiter.sentOf("confirm")).toHaveLength(1);
  });

  it("that finds the grant gone tells the lease", async () => {
    const asked = await queueUp();
    arbiter.latencyMs = 10;
    await handOver();
    await runtime.advance(10);
    const grant = asked.value as Grant;
    arbiter.pushes = "kept";
    server.do({ type: "revoke", key: KEY, token: Number(grant.token), reason: "stuck" });
    await runtime.advance(20);
    expect(grant.loss).toEqual({ reason: "revoked", detail: "stuck" });
  });

  it("that was answered too late is no ground to believe: the request is repeated", async () => {
    arbiter.believesPushes = false;
    store = new LedgerStore(arbiter);
    const asked = await queueUp();
    arbiter.fate = "request broken";
    await handOver();
    await runtime.advance(OFFER_MS);
    expect(asked.state).toBe("pending");
    arbiter.fate = "answered";
    await runtime.advance(5_000);
    expect(asked.value).toMatchObject({ type: "granted" });
    expect(server.view(KEY).holders).toHaveLength(1);
  });
});

describe("a grant that the store calls gone in an answer to an earlier request", () => {
  const revoke = (grant: Grant): void => {
    arbiter.pushes = "kept";
    server.do({ type: "revoke", key: KEY, token: Number(grant.token), reason: "stuck" });
  };

  /** The first request was entered, but not answered: a copy of it is under way for 10 ms. */
  async function queueUpAndAskAgain(): Promise<Watched<Grant | Busy>> {
    arbiter.next("acquire", "reply lost");
    const asked = await queueUp();
    await runtime.advance(5_000);
    arbiter.latencyMs = 10;
    while (arbiter.sentOf("acquire").length < 2) await runtime.advance(1);
    return asked;
  }

  it("ends where that was the confirm of its offer", async () => {
    arbiter.believesPushes = false;
    store = new LedgerStore(arbiter);
    const asked = await queueUpAndAskAgain();
    await runtime.advance(5);
    await handOver();
    await runtime.advance(15);
    // The copy was answered with the grant, while the confirm is still under way.
    const grant = asked.value as Grant;
    expect(grant).toMatchObject({ type: "granted" });
    expect(arbiter.sentOf("confirm")).toHaveLength(1);
    revoke(grant);
    await runtime.advance(20);
    expect(grant.loss).toEqual({ reason: "revoked", detail: "stuck" });
    expect(grant.deadlineMs).toBeLessThan(runtime.nowMs);
  });

  it("ends where that was a copy of its acquire", async () => {
    const asked = await queueUpAndAskAgain();
    arbiter.latencyMs = 0;
    await handOver();
    await runtime.advance(1);
    const grant = asked.value as Grant;
    expect(grant).toMatchObject({ type: "granted" });
    revoke(grant);
    await runtime.advance(10);
    expect(grant.loss).toMatchObject({ reason: "revoked" });
    expect(grant.deadlineMs).toBeLessThan(runtime.nowMs);
  });
});

describe("a push that never came", () => {
  it("is found by the next heartbeat", async () => {
    arbiter.pushes = "kept";
    const asked = await queueUp();
    await handOver();
    await runtime.advance(OFFER_MS - 1);
    expect(asked.state).toBe("pending");
    await runtime.advance(1);
    expect(asked.value).toMatchObject({ type: "granted" });
  });

  it("is believed for its length at most, where the clock of the store was set back", async () => {
    arbiter.pushes = "kept";
    const asked = await queueUp();
    await handOver();
    server.aheadMs -= 60_000;
    arbiter.fate = "request broken";
    arbiter.onReset();
    await settled();
    arbiter.fate = "answered";
    arbiter.onReset();
    await settled();
    const believedMs = (asked.value as Grant).deadlineMs - runtime.nowMs;
    expect(believedMs).toBeLessThanOrEqual(30_000);
  });

  it("is found at once after the subscription was renewed", async () => {
    arbiter.pushes = "kept";
    const asked = await queueUp();
    await runtime.advance(1_000);
    await handOver();
    arbiter.onReset();
    await settled();
    expect(asked.value).toMatchObject({ type: "granted" });
    const lapseMs = runtime.nowMs + OFFER_MS;
    await runtime.advance(0);
    expect((asked.value as Grant).deadlineMs).toBeGreaterThan(lapseMs);
  });

  it("is noticed by the client that released: it checks once after the offer", async () => {
    arbiter.pushes = "kept";
    const dead = await queueUp("dead");
    arbiter.fate = "request lost";
    const other = server.connect();
    const next = watch(new LedgerStore(other).acquire(claimOf("n"), forever()));
    await runtime.advance(0);
    other.fate = "request lost";
    await handOver();
    await runtime.advance(OFFER_MS);
    expect(next.state).toBe("pending");
    await runtime.advance(1);
    expect(next.value).toMatchObject({ type: "granted" });
    expect(dead.state).toBe("pending");
  });
});

describe("a store that works in slices", () => {
  const shared = { mode: "shared", storeTimeoutMs: 60_000 } as const;
  const readers = (count: number): Watched<Grant | Busy>[] =>
    Array.from({ length: count }, (_, at) =>
      watch(store.acquire(claimOf(`reader-${at}`, shared), forever())),
    );

  it("serves all who may share, though their client hears no push", async () => {
    const asked = readers(300);
    await settled();
    arbiter.pushes = "kept";
    await handOver();
    // The client that released goes on, long before any waiter would look by itself.
    await runtime.advance(100);
    expect(server.view(KEY)).toMatchObject({ waiters: [] });
    await runtime.advance(OFFER_MS);
    expect(asked.filter(({ value }) => value?.type === "granted")).toHaveLength(300);
  });

  it("is asked again where only holders that expired are in the way", async () => {
    await handOver();
    await settled();
    for (let at = 0; at < 200; at += 1) {
      await store.acquire(claimOf(`reader-${at}`, { ...shared, ttlMs: 1_000 }), null);
    }
    await runtime.advance(1_100);
    const asked = watch(holder.acquire(claimOf("writer"), null));
    await runtime.advance(10);
    expect(asked.value).toMatchObject({ type: "granted" });
  });
});

describe("a handed-off grant that another answer brings", () => {
  it("ends where the answer to its confirm says that it is gone", async () => {
    arbiter.believesPushes = false;
    arbiter.pushes = "kept";
    arbiter.next("acquire", "reply broken");
    const asked = await queueUp();
    await handOver();
    let confirm = async (): Promise<void> => {};
    const execute = arbiter.execute.bind(arbiter);
    arbiter.execute = (shard, commands) => {
      if (commands[0]?.type !== "confirm") return execute(shard, commands);
      return new Promise((resolve) => {
        confirm = async () => resolve(await execute(shard, commands));
      });
    };
    for (const push of arbiter.kept) arbiter.onPush(push);
    // The request is repeated, and answered before the confirm.
    await runtime.advance(100);
    const grant = asked.value as Grant;
    expect(grant).toMatchObject({ type: "granted", isHandoff: true });
    server.do({ type: "revoke", key: KEY, token: Number(grant.token), reason: "stuck" });
    await confirm();
    await settled();
    expect(grant.loss).toEqual({ reason: "revoked", detail: "stuck" });
  });
});
