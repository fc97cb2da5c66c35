import { beforeEach, describe, expect, it } from "vitest";
import { claimOf, type LedgerArbiter, LedgerServer } from "../../../test/fixtures/ledger-server.js";
import { ManualRuntime } from "../../../test/fixtures/manual-runtime.js";
import { watch } from "../../../test/fixtures/outcome.js";
import type { Claim, Grant, Store } from "../../contract/store.js";
import { ClosedError, StoreError } from "../../errors/index.js";
import { AcquireWait } from "../../lease/acquire-wait.js";
import { marginMs } from "../../rules/margin.js";
import { LedgerStore } from "./ledger-store.js";

const KEY = "l:x";
let runtime: ManualRuntime;
let server: LedgerServer;
let arbiter: LedgerArbiter;
let store: LedgerStore;

const forever = (): AcquireWait => new AcquireWait(runtime, Number.POSITIVE_INFINITY, undefined);

async function take(given: Partial<Claim> = {}, from = store): Promise<Grant> {
  const grant = await from.acquire(claimOf("a", given), null);
  if (grant.type !== "granted") throw new Error("not granted");
  return grant;
}

beforeEach(() => {
  runtime = new ManualRuntime();
  server = new LedgerServer(runtime);
  arbiter = server.connect();
  store = new LedgerStore(arbiter);
});

describe("renew", () => {
  it("moves the deadline on, counted from when it was sent", async () => {
    const grant = await take();
    await runtime.advance(10_000);
    arbiter.latencyMs = 100;
    const sentMs = runtime.nowMs;
    const renewals = watch(store.renew([{ grant, ttlMs: 30_000 }]));
    await runtime.advance(200);
    expect(renewals.value).toEqual([{ type: "renewed", waiting: false }]);
    expect(grant.deadlineMs).toBe(sentMs + 30_000 - marginMs(30_000));
  });

  it("of many grants travels as one call", async () => {
    const grants = await Promise.all(
      Array.from({ length: 50 }, (_, n) => take({ owner: `o${n}`, name: `n${n}` })),
    );
    const before = arbiter.calls.length;
    const renewals = await store.renew(grants.map((grant) => ({ grant, ttlMs: 30_000 })));
    expect(renewals.every(({ type }) => type === "renewed")).toBe(true);
    expect(arbiter.calls.length - before).toBe(1);
  });

  it("keeps its distance from the expiry, also when asked for less than there is", async () => {
    const grant = await take({ ttlMs: 60_000 });
    const before = grant.deadlineMs;
    await store.renew([{ grant, ttlMs: 100 }]);
    expect(grant.deadlineMs).toBe(before);
  });

  it("tells that waiters are there", async () => {
    const grant = await take();
    void store.acquire(claimOf("b"), forever());
    await runtime.advance(0);
    expect(await store.renew([{ grant, ttlMs: 30_000 }])).toMatchObject([{ waiting: true }]);
  });

  it("is never sent after the own deadline, and never valid beyond it", async () => {
    const grant = await take();
    await store.renew([{ grant, ttlMs: 30_000 }]);
    const [sent] = arbiter.sentOf("renew");
    const storeMs = (sent?.notAfterUs ?? Number.NaN) / 1000 - server.aheadMs;
    expect(storeMs).toBeLessThanOrEqual(grant.deadlineMs);
    runtime.block(40_000);
    const [late] = await store.renew([{ grant, ttlMs: 30_000 }]);
    expect(late).toEqual({ type: "ended" });
    expect(grant.loss).toEqual({ reason: "expired", detail: "" });
    expect(arbiter.sentOf("renew")).toHaveLength(1);
  });

  it("without an answer is unknown, for that one alone where only that one failed", async () => {
    const [a, b] = [await take({ name: "a" }), await take({ name: "b", owner: "b" })];
    const error = new StoreError("Odd", { outcome: "unknown" });
    arbiter.impostor = (commands) =>
      commands.map((one) => (one.key === "l:a" ? error : server.do(one)));
    const renewals = await store.renew([
      { grant: a, ttlMs: 30_000 },
      { grant: b, ttlMs: 30_000 },
    ]);
    expect(renewals).toEqual([
      { type: "unknown", error },
      { type: "renewed", waiting: false },
    ]);
  });

  it("ends a grant that is gone, with the store's reason", async () => {
    const grant = await take();
    server.do({ type: "revoke", key: KEY, token: Number(grant.token), reason: "stuck" });
    const [renewal] = await store.renew([{ grant, ttlMs: 30_000 }]);
    expect(renewal).toEqual({ type: "ended" });
    expect(grant.loss).toEqual({ reason: "revoked", detail: "stuck" });
  });

  it("ends a grant that is gone at once, while another of its batch has no answer", async () => {
    arbiter.shards = (key) => key;
    arbiter.pushes = "kept";
    const [other, dead] = [await take({ name: "y", owner: "b" }), await take()];
    server.do({ type: "revoke", key: KEY, token: Number(dead.token), reason: "stuck" });
    arbiter.next("renew", "request lost");
    const renewals = watch(store.renew([other, dead].map((grant) => ({ grant, ttlMs: 30_000 }))));
    await runtime.advance(0);
    expect(renewals.state).toBe("pending");
    expect(dead.loss).toEqual({ reason: "revoked", detail: "stuck" });
    expect(dead.deadlineMs).toBe(Number.NEGATIVE_INFINITY);
  });
});

describe("release", () => {
  it("says whether the grant was still there", async () => {
    const grant = await take();
    expect(await store.release(grant, 1_000)).toBe(true);
    expect(await store.release(grant, 1_000)).toBe(false);
  });

  it("that had to be repeated counts as done", async () => {
    const grant = await take();
    arbiter.next("release", "reply broken");
    const released = watch(store.release(grant, 1_000));
    await runtime.advance(200);
    expect(released.value).toBe(true);
    expect(arbiter.sentOf("release")).toHaveLength(2);
  });

  it.each(["request lost", "request broken"] as const)("ends in time with a %s", async (fate) => {
    const grant = await take();
    arbiter.fate = fate;
    const released = watch(store.release(grant, 1_000));
    await runtime.advance(1_000);
    expect(released.state).toBe("rejected");
  });

  it("is not overtaken by an answer to a late echo of its grant", async () => {
    const other = new LedgerStore(server.connect());
    const held = await take({ space: "once", owner: "h" }, other);
    const asked = watch(store.acquire(claimOf("a", { space: "once" }), forever()));
    await runtime.advance(0);
    arbiter.pushes = "kept";
    await other.release(held, 1_000);
    for (const push of arbiter.kept) arbiter.onPush(push);
    await runtime.advance(0);
    arbiter.next("release", "request broken");
    const released = watch(
      store.release(asked.value as Grant, 1_000, { ttlMs: 60_000, meta: { by: "a" } }),
    );
    for (const push of arbiter.kept) arbiter.onPush(push);
    await runtime.advance(200);
    expect(released.value).toBe(true);
    expect(server.view("o:x").mark).not.toBeNull();
    expect(arbiter.sentOf("release").every(({ keep }) => keep !== null)).toBe(true);
  });

  it("that the store runs behind a later try is not in the way of that try", async () => {
    const grant = await take();
    // The release was refused and sent again, behind the try.
    arbiter.impostor = (commands) => {
      arbiter.impostor = null;
      const replies = [...commands].reverse().map((one) => server.do(one));
      return replies.reverse();
    };
    const released = store.release(grant, 1_000);
    const asked = watch(store.acquire(claimOf("b"), null));
    await runtime.advance(0);
    expect(await released).toBe(true);
    expect(asked.value).toMatchObject({ type: "granted" });
    expect(arbiter.sentOf("acquire")).toHaveLength(3);
  });

  it("of one permit is waited for though that of another was answered since", async () => {
    const permit = { mode: "shared", limit: 2 } as const;
    const grants = [await take(permit), await take({ ...permit, owner: "b" })];
    arbiter.next("release", "request broken");
    const released = [];
    for (const grant of grants) {
      released.push(watch(store.release(grant, 1_000)));
      await runtime.advance(0);
    }
    expect(released.map(({ state }) => state)).toEqual(["pending", "resolved"]);
    const asked = watch(store.acquire(claimOf("c", { ...permit, weight: 2 }), null));
    await runtime.advance(200);
    expect(asked.value).toMatchObject({ type: "granted" });
  });

  it("leaves a mark in its place when asked to", async () => {
    const grant = await take({ space: "once" });
    const waiter = watch(store.acquire(claimOf("w", { space: "once" }), forever()));
    await runtime.advance(0);
    await store.release(grant, 1_000, { ttlMs: 60_000, meta: { by: "a" } });
    await runtime.advance(0);
    const mark = { token: grant.token, meta: { by: "a" } };
    expect(waiter.value).toMatchObject({ type: "busy", holder: null, mark });
    expect(await store.acquire(claimOf("b", { space: "once" }), null)).toMatchObject({ mark });
  });

  describe("that had to be repeated, with a mark", () => {
    const keep = { ttlMs: 60_000, meta: { by: "a" } };
    const revoke = ({ token }: Grant): void => {
      server.do({ type: "revoke", key: "o:x", token: Number(token), reason: "stuck" });
    };

    it("counts as done where the mark is there", async () => {
      const grant = await take({ space: "once" });
      arbiter.next("release", "reply broken");
      const released = watch(store.release(grant, 1_000, keep));
      await runtime.advance(200);
      expect(released.value).toBe(true);
      expect(server.view("o:x").mark).toMatchObject({ token: Number(grant.token) });
    });

    it("does not count where the lease was revoked before", async () => {
      const grant = await take({ space: "once" });
      arbiter.next("release", "request broken");
      const released = watch(store.release(grant, 1_000, keep));
      revoke(grant);
      await runtime.advance(200);
      expect(released.value).toBe(false);
      expect(server.view("o:x").mark).toBeNull();
    });

    it("does not count by the mark of another run", async () => {
      const grant = await take({ space: "once" });
      arbiter.next("release", "request broken");
      const released = watch(store.release(grant, 1_000, keep));
      revoke(grant);
      const other = new LedgerStore(server.connect());
      const next = watch(take({ space: "once", owner: "b" }, other));
      await runtime.advance(0);
      await other.release(next.value as Grant, 1_000, { ...keep, meta: { by: "b" } });
      await runtime.advance(200);
      expect(released.value).toBe(false);
    });

    it("ends in time where the store does not tell of the mark", async () => {
      const grant = await take({ space: "once" });
      arbiter.next("release", "reply broken");
      arbiter.next("inspect", "request lost");
      const released = watch(store.release(grant, 1_000, keep));
      await runtime.advance(1_000);
      expect(released.state).toBe("rejected");
    });

    it("looks again where the first look failed", async () => {
      const grant = await take({ space: "once" });
      arbiter.next("release", "reply broken");
      arbiter.next("inspect", "request broken");
      const released = watch(store.release(grant, 1_000, keep));
      await runtime.advance(500);
      expect(released.value).toBe(true);
      expect(arbiter.sentOf("inspect")).toHaveLength(2);
    });
  });
});

describe("resume", () => {
  it("goes on with the same grant, from another client", async () => {
    const grant = await take({ transferable: true });
    const other = new LedgerStore(server.connect());
    const resumed = await other.resume(grant.claim, grant.token);
    expect(resumed).toMatchObject({ token: grant.token, span: 1 });
    expect(resumed?.deadlineMs).toBe(runtime.nowMs + 30_000 - marginMs(30_000));
    if (resumed) expect(await other.release(resumed, 1_000)).toBe(true);
    // A copy of its acquire may be under way; this client cannot know.
    expect(server.view(KEY).holders).toEqual([]);
  });

  it("is null where the grant is gone, or not that one", async () => {
    const grant = await take({ transferable: true });
    expect(await store.resume(grant.claim, grant.token + 1n)).toBeNull();
    await store.release(grant, 1_000);
    expect(await store.resume(grant.claim, grant.token)).toBeNull();
  });
});

it("a token that no ledger can give belongs to no lease, and is not asked for", async () => {
  await take();
  for (const token of [-1n, 10n ** 30n]) {
    expect(await store.revoke("lock", "x", token, "odd")).toBe(false);
  }
  expect(arbiter.sentOf("revoke")).toEqual([]);
});

describe("a revoked grant", () => {
  it("is told to its holder at once", async () => {
    const grant = await take();
    const other = new LedgerStore(server.connect());
    expect(await other.revoke("lock", "x", grant.token, "stuck deploy")).toBe(true);
    await runtime.advance(0);
    expect(grant.loss).toEqual({ reason: "revoked", detail: "stuck deploy" });
    // A client that was just given the grant does not keep it yet, and misses the event.
    expect(grant.deadlineMs).toBe(Number.NEGATIVE_INFINITY);
    expect(await other.revoke("lock", "x", grant.token, "again")).toBe(false);
  });
});

describe("a grant that its own client revoked", () => {
  it("ends at once, though the push is lost", async () => {
    const [grant, other] = [await take({ span: 5 }), await take({ owner: "b", name: "y" })];
    arbiter.pushes = "kept";
    // The token of its last turn.
    expect(await store.revoke("lock", "x", grant.token + 4n, "stuck")).toBe(true);
    expect(grant.loss).toEqual({ reason: "revoked", detail: "stuck" });
    expect(other.deadlineMs).toBeGreaterThan(runtime.nowMs);
  });

  it("is not taken where its offer arrives after that", async () => {
    const other = new LedgerStore(server.connect());
    const held = await take({}, other);
    arbiter.pushes = "kept";
    const asked = watch(store.acquire(claimOf("b"), forever()));
    await runtime.advance(1);
    await other.release(held, 1_000);
    const token = server.view(KEY).holders[0]?.token ?? 0;
    await store.revoke("lock", "x", BigInt(token), "stuck");
    const [offer] = arbiter.kept;
    // Its confirm is not answered in time to tell.
    arbiter.next("confirm", "request lost");
    if (offer) arbiter.onPush(offer);
    expect(server.view(KEY).holders).toEqual([]);
    await runtime.advance(10);
    expect(asked.value).toMatchObject({ type: "granted" });
    expect((asked.value as Grant).token).toBeGreaterThan(BigInt(token));
  });
});

describe("after the subscription was renewed", () => {
  it("a revocation that went unheard is found", async () => {
    const grant = await take();
    arbiter.pushes = "kept";
    server.do({ type: "revoke", key: KEY, token: Number(grant.token), reason: "stuck" });
    await runtime.advance(100);
    expect(grant.loss).toBeNull();
    arbiter.onReset();
    await runtime.advance(0);
    expect(grant.loss).toEqual({ reason: "revoked", detail: "stuck" });
  });

  it("a grant that is still there is left as it is", async () => {
    const grant = await take();
    const { deadlineMs } = grant;
    await runtime.advance(1_000);
    arbiter.onReset();
    await runtime.advance(0);
    expect(grant.loss).toBeNull();
    expect(grant.deadlineMs).toBe(deadlineMs);
  });
});

describe("the highest token seen", () => {
  it("travels with every acquire and renew, spans included", async () => {
    const grant = await take({ span: 5 });
    await store.renew([{ grant, ttlMs: 30_000 }]);
    await take({ name: "y", owner: "b" });
    const seen = Number(grant.token) + 4;
    expect(arbiter.sentOf("renew")[0]?.seenToken).toBe(seen);
    expect(arbiter.sentOf("acquire").at(-1)?.seenToken).toBe(seen);
  });
});

describe("close", () => {
  it("ends all waits, withdraws them, and refuses what comes later", async () => {
    await take({}, new LedgerStore(server.connect()));
    const asked = watch(store.acquire(claimOf("b"), forever()));
    await runtime.advance(0);
    const closed = watch(store.close());
    await runtime.advance(0);
    expect(asked.value).toMatchObject({ type: "busy" });
    expect(closed.state).toBe("resolved");
    expect(arbiter.isClosed).toBe(true);
    expect(server.view(KEY).waiters).toEqual([]);
    await expect(store.acquire(claimOf("c"), null)).rejects.toBeInstanceOf(ClosedError);
    await store.close();
    expect(runtime.keepsAlive).toBe(false);
  });

  it("settles what a silent store left unanswered, up to the last moment", async () => {
    arbiter.fate = "request lost";
    const early = watch(store.inspect("lock", "x"));
    await runtime.advance(100);
    const late = watch(store.inspect("lock", "y"));
    await store.close();
    await runtime.advance(0);
    for (const asked of [early, late]) {
      expect(asked.error).toMatchObject({ outcome: "unknown", retryable: false });
    }
    expect(runtime.keepsAlive).toBe(false);
  });

  it.each([0, 600, 1_000, 8_000])(
    "waits for a store that has been silent for %d ms until that is a second",
    async (silentMs) => {
      await take();
      void store.acquire(claimOf("b"), forever());
      await runtime.advance(0);
      arbiter.fate = "request lost";
      void store.inspect("lock", "x").catch(() => {});
      await runtime.advance(silentMs);
      const closed = watch(store.close());
      await runtime.advance(Math.max(0, 999 - silentMs));
      expect(closed.state).toBe(silentMs < 1_000 ? "pending" : "resolved");
      await runtime.advance(1);
      expect(closed.state).toBe("resolved");
    },
  );
});

it.each([Number.NaN, -1, 0, 9, "abc"])("a offer window of %s is refused", (offerMs) => {
  const open = (): Store => new LedgerStore(server.connect(), { offerMs: offerMs as number });
  expect(open).toThrow("Invalid offerMs");
});
