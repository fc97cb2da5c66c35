import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { claimOf } from "../../../test/fixtures/ledger-server.js";
import { settled } from "../../../test/fixtures/manual-runtime.js";
import type { Grant, Store } from "../../contract/store.js";
import { AcquireWait } from "../../lease/acquire-wait.js";
import { MemorySpace, memoryStore, openMemoryStore } from "./index.js";

async function take(store: Store, owner: string, ttlMs = 30_000): Promise<Grant> {
  const grant = await store.acquire(claimOf(owner, { ttlMs }), null);
  if (grant.type !== "granted") throw new Error("not granted");
  return grant;
}

const forever = (store: Store): AcquireWait =>
  new AcquireWait(store.runtime, Number.POSITIVE_INFINITY, undefined);

describe("stores of one space", () => {
  it("exclude each other, and hand over", async () => {
    const space = new MemorySpace();
    const [one, two] = [memoryStore({ space }), memoryStore({ space })];
    const first = await take(one, "a");
    expect(await two.acquire(claimOf("b"), null)).toMatchObject({ type: "busy" });
    const waiting = two.acquire(claimOf("c"), forever(two));
    await one.release(first, 1_000);
    const second = (await waiting) as Grant;
    expect(second.token).toBeGreaterThan(first.token);
    await settled();
    expect(second.deadlineMs).toBeGreaterThan(two.runtime.clock.nowMs() + 25_000);
    await two.release(second, 1_000);
    expect(space.size).toBe(0);
  });

  it("pass over one that was closed", async () => {
    const space = new MemorySpace();
    const [one, two, three] = [1, 2, 3].map(() => memoryStore({ space })) as [Store, Store, Store];
    const held = await take(one, "a");
    const [second, third] = [
      two.acquire(claimOf("b"), forever(two)),
      three.acquire(claimOf("c"), forever(three)),
    ];
    await two.close();
    expect(await second).toMatchObject({ type: "busy" });
    await one.release(held, 1_000);
    expect(await third).toMatchObject({ type: "granted" });
  });

  it("serve the next when a lease expires by the clock", async () => {
    const space = new MemorySpace();
    const [one, two] = [memoryStore({ space }), memoryStore({ space })];
    const startMs = two.runtime.clock.nowMs();
    const lapsing = await take(one, "a", 40);
    const next = (await two.acquire(claimOf("b"), forever(two))) as Grant;
    expect(next.token).toBeGreaterThan(lapsing.token);
    expect(two.runtime.clock.nowMs() - startMs).toBeGreaterThanOrEqual(40);
    expect(lapsing.deadlineMs).toBeLessThan(two.runtime.clock.nowMs());
  });
});

describe("stores without a space", () => {
  it("have one of their own", async () => {
    await take(memoryStore(), "a");
    await take(memoryStore(), "b");
  });
});

describe("a list", () => {
  it("has the names in use below a prefix, in the order of their bytes", async () => {
    const store = memoryStore();
    const names = ["p:\u{1f512}", "p:a", "q:a", "p:\uff5e", "p:B"];
    for (const name of names) await store.acquire(claimOf(name, { name }), null);
    const listed: string[] = [];
    for await (const { name } of store.list("lock", "p:")) listed.push(name);
    expect(listed).toEqual(["p:B", "p:a", "p:\uff5e", "p:\u{1f512}"]);
  });

  it("leaves out what only waits to be forgotten, and other spaces", async () => {
    const store = memoryStore();
    const grant = await take(store, "a");
    await store.acquire(claimOf("e", { space: "election" }), null);
    await store.revoke("lock", "x", grant.token, "gone");
    const listed: string[] = [];
    for await (const { name } of store.list("lock", "")) listed.push(name);
    expect(listed).toEqual([]);
  });
});

describe("openMemoryStore", () => {
  it("shares a name, and nothing without one", async () => {
    const open = (url: string): Store => openMemoryStore(new URL(url));
    await take(open("memory:shared-by-name"), "a");
    const busy = await open("memory:shared-by-name").acquire(claimOf("b"), null);
    expect(busy).toMatchObject({ type: "busy" });
    const slashed = await open("memory://shared-by-name").acquire(claimOf("b"), null);
    expect(slashed).toMatchObject({ type: "busy" });
    await take(open("memory:another-name"), "c");
    await take(open("memory:"), "d");
    await take(open("memory:"), "e");
  });
});

describe("in production", () => {
  const emitWarning = vi.spyOn(process, "emitWarning");

  /** The module as a new process has it. */
  async function fresh(): Promise<typeof import("./index.js")> {
    vi.resetModules();
    return import("./index.js");
  }

  beforeEach(() => {
    vi.stubEnv("NODE_ENV", "production");
    emitWarning.mockReset().mockImplementation(() => {});
  });

  afterEach(() => {
    vi.unstubAllEnvs();
  });

  it("a process is warned once", async () => {
    const memory = await fresh();
    memory.memoryStore();
    memory.memoryStore();
    memory.openMemoryStore(new URL("memory:jobs"));
    expect(emitWarning).toHaveBeenCalledOnce();
    expect(emitWarning).toHaveBeenCalledWith(
      "The memory store excludes no other process, and NODE_ENV is production.",
      expect.objectContaining({ type: "HoldfastWarning", code: "HF_MEMORY_IN_PRODUCTION" }),
    );
  });

  it("nothing is said where it is meant, nor elsewhere", async () => {
    const memory = await fresh();
    memory.memoryStore({ warnInProduction: false });
    memory.openMemoryStore(new URL("memory:?warnInProduction=false"));
    memory.openMemoryStore(new URL("memory:jobs?warnInProduction=false"));
    vi.stubEnv("NODE_ENV", "development");
    memory.memoryStore();
    expect(emitWarning).not.toHaveBeenCalled();
  });

  it("an option that is neither true nor false is refused", () => {
    const odd = { warnInProduction: "no" } as unknown as { warnInProduction: boolean };
    expect(() => memoryStore(odd)).toThrow(/warnInProduction/);
    expect(() => openMemoryStore(new URL("memory:?warnInProduction=no"))).toThrow(
      /warnInProduction/,
    );
  });
});
