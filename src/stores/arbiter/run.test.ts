import { beforeEach, describe, expect, it } from "vitest";
import { claimOf, type LedgerArbiter, LedgerServer } from "../../../test/fixtures/ledger-server.js";
import { ManualPort } from "../../../test/fixtures/manual-port.js";
import { type Watched, watch } from "../../../test/fixtures/outcome.js";
import { WaitTime } from "../../lease/wait-time.js";
import { MOST_FOLLOWERS } from "../../rules/upkeep.js";
import type { Busy, Claim, GoneEvent, Grant } from "../../store.js";
import { ArbiterStore } from "./arbiter-store.js";

const TTL_MS = 30_000;
let port: ManualPort;
let server: LedgerServer;
let holder: ArbiterStore;
let held: Grant;
let arbiter: LedgerArbiter;
let store: ArbiterStore;
let gone: GoneEvent[];

async function open(client: ArbiterStore, owner: string): Promise<Grant> {
  const grant = await client.acquire(claimOf(owner), null);
  if (grant.type !== "granted") throw new Error("not granted");
  return grant;
}

/** A waiter with the terms of all others, but for `given`. */
async function queueUp(
  owner: string,
  given: Partial<Claim> = {},
  by: ArbiterStore = store,
): Promise<Watched<Grant | Busy> & { readonly wait: WaitTime }> {
  const wait = new WaitTime(port, Number.POSITIVE_INFINITY, undefined);
  const claim = claimOf(owner, { storeTimeoutMs: 60_000, meta: {}, ...given });
  const asked = watch(by.acquire(claim, wait));
  await port.advance(0);
  return Object.assign(asked, { wait });
}

async function release(asked: Watched<Grant | Busy>): Promise<void> {
  await store.release(asked.value as Grant, 1_000);
  await port.advance(0);
}

const tokenOf = (asked: Watched<Grant | Busy>): bigint => (asked.value as Grant).token;
const releasedOwners = (): string[] => arbiter.sentOf("release").map(({ owner }) => owner);

beforeEach(async () => {
  port = new ManualPort();
  server = new LedgerServer(port, MOST_FOLLOWERS);
  holder = new ArbiterStore(server.connect());
  held = await open(holder, "h");
  arbiter = server.connect();
  store = new ArbiterStore(arbiter);
  gone = [];
  store.onEvent((event) => gone.push(event));
  await store.inspect("lock", "other");
});

describe("a run", () => {
  it("lets waiters of one process hold in their order, by one grant of the store", async () => {
    const asked = [await queueUp("a"), await queueUp("b"), await queueUp("c")] as const;
    await holder.release(held, 1_000);
    await port.advance(0);
    for (const [turn, one] of asked.entries()) {
      expect(asked.filter(({ value }) => value !== undefined)).toHaveLength(turn + 1);
      expect(tokenOf(one)).toBe(tokenOf(asked[0]) + BigInt(turn));
      expect(server.view("l:x")).toMatchObject({ holders: [{ token: Number(tokenOf(asked[0])) }] });
      expect(server.view("l:x").waiters).toHaveLength(2 - turn);
      await release(one);
    }
    expect(arbiter.sentOf("confirm")).toHaveLength(1);
    expect(releasedOwners()).toEqual(["b", "c", "a"]);
    expect(server.view("l:x")).toMatchObject({ holders: [], waiters: [] });
  });

  it("ends before a waiter of another process, and before one with other terms", async () => {
    const first = await queueUp("a");
    const other = await queueUp("o", {}, holder);
    const second = await queueUp("b");
    const longer = await queueUp("c", { ttlMs: 2 * TTL_MS });
    await holder.release(held, 1_000);
    await port.advance(0);
    await release(first);
    expect(other.value).toMatchObject({ type: "granted" });
    await holder.release(other.value as Grant, 1_000);
    await port.advance(0);
    await release(second);
    expect(tokenOf(longer)).toBeGreaterThan(tokenOf(second));
    expect(arbiter.sentOf("confirm")).toHaveLength(3);
  });

  it("passes a waiter that gave up", async () => {
    const asked = [await queueUp("a"), await queueUp("b"), await queueUp("c")] as const;
    await holder.release(held, 1_000);
    await port.advance(0);
    asked[1].wait.end("withdrawn");
    await release(asked[0]);
    expect(asked[1].value).toMatchObject({ type: "busy" });
    expect(tokenOf(asked[2])).toBe(tokenOf(asked[0]) + 2n);
  });

  it.each([
    ["may be resumed by its handle", { transferable: true }],
    ["needs a longer grace", { leastMs: TTL_MS }],
  ])("ends before a waiter whose lease %s, and that waiter is next", async (_, given) => {
    const asked = [await queueUp("a"), await queueUp("b", given), await queueUp("c")] as const;
    await holder.release(held, 1_000);
    await port.advance(0);
    await release(asked[0]);
    expect(asked[2].value).toBeUndefined();
    expect(releasedOwners()).toEqual(["a"]);
    expect(server.view("l:x").waiters).toHaveLength(1);
  });

  it("ends after a tenth of the ttl: the next lease has its full length", async () => {
    const asked = [await queueUp("a"), await queueUp("b")] as const;
    await holder.release(held, 1_000);
    await port.advance(TTL_MS / 10);
    await release(asked[0]);
    expect(arbiter.sentOf("confirm")).toHaveLength(2);
    expect((asked[1].value as Grant).deadlineMs).toBeGreaterThan(port.nowMs + 0.98 * TTL_MS);
  });

  it("ends with a revocation, by whichever token", async () => {
    const asked = [await queueUp("a"), await queueUp("b"), await queueUp("c")] as const;
    await holder.release(held, 1_000);
    await port.advance(0);
    await release(asked[0]);
    expect(await holder.revoke("lock", "x", tokenOf(asked[1]), "stuck")).toBe(true);
    await port.advance(0);
    expect(gone).toMatchObject([{ grant: asked[1].value, reason: "revoked", detail: "stuck" }]);
    await release(asked[1]);
    expect(tokenOf(asked[2])).toBeGreaterThan(tokenOf(asked[0]) + 2n);
    expect(arbiter.sentOf("confirm")).toHaveLength(2);
  });

  it("is renewed by the turn under way", async () => {
    const asked = [await queueUp("a"), await queueUp("b")] as const;
    await holder.release(held, 1_000);
    await port.advance(0);
    await release(asked[0]);
    const grant = asked[1].value as Grant;
    await port.advance(TTL_MS / 2);
    expect(await store.renew([{ grant, ttlMs: TTL_MS }])).toMatchObject([{ type: "renewed" }]);
    expect(grant.deadlineMs).toBeGreaterThan(port.nowMs + 0.98 * TTL_MS);
  });

  it("has one confirm: its answer counts for the turn under way", async () => {
    arbiter.latencyMs = 10;
    const asked = [await queueUp("a"), await queueUp("b"), await queueUp("c")] as const;
    await port.advance(20);
    await holder.release(held, 1_000);
    await port.advance(10);
    await store.release(asked[0].value as Grant, 1_000);
    await port.advance(0);
    const grant = asked[1].value as Grant;
    expect(grant.deadlineMs).toBeLessThan(port.nowMs + TTL_MS / 2);
    await port.advance(20);
    expect(grant.deadlineMs).toBeGreaterThan(port.nowMs + 0.98 * TTL_MS);
  });

  it("is lost for the turn under way if the store does not confirm it", async () => {
    arbiter.latencyMs = 10;
    const asked = [await queueUp("a"), await queueUp("b")] as const;
    await port.advance(20);
    await holder.release(held, 1_000);
    await port.advance(10);
    server.ledger.forget();
    await store.release(asked[0].value as Grant, 1_000);
    await port.advance(20);
    expect(gone).toMatchObject([{ grant: asked[1].value, reason: "missing" }]);
  });

  it("is known by its first waiter only where its push was lost", async () => {
    const asked = [await queueUp("a"), await queueUp("b")] as const;
    arbiter.pushes = "kept";
    await holder.release(held, 1_000);
    arbiter.onReset();
    await port.advance(0);
    expect(asked[0].value).toMatchObject({ type: "granted", span: 1 });
    arbiter.pushes = "carried";
    await release(asked[0]);
    expect(tokenOf(asked[1])).toBeGreaterThan(tokenOf(asked[0]) + 1n);
  });
});
