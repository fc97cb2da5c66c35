import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Holdfast } from "../../src/api/holdfast.js";
import { conformance, type Harness } from "../../src/conformance/index.js";
import { LEDGER_TRAITS } from "../servers/ledger-arbiter.js";
import { type LedgerServer, startLedgerServer } from "../servers/ledger-server.js";
import { waitUntil } from "../servers/wait-until.js";
import { runConformance } from "./run-conformance.js";

let server: LedgerServer;

beforeAll(async () => {
  server = await startLedgerServer();
});

afterAll(() => server?.close());

const harness: Harness = {
  traits: { ...LEDGER_TRAITS, ordersReleases: true },
  open: async (namespace) => server.open(namespace),
  child: {
    get module() {
      return server.childModule;
    },
    argument: (namespace) => server.address(namespace),
  },
  faults: {
    kinds: ["loseReply", "keepBack", "dropPush", "cut", "heal"],
    open: (namespace) => server.openFaulty(namespace),
  },
  async wipe(namespace) {
    await server.ask({ type: "wipe", namespace });
  },
  async leftovers(namespace) {
    const size = await server.ask({ type: "size", namespace });
    return Array.from({ length: size }, () => "a name");
  },
};

runConformance(harness);

describe.concurrent("with a server that refuses connections instead of being silent", () => {
  const kinds = ["cut", "heal"] as const;
  const refusing = { kinds, open: (namespace: string) => server.openFaulty(namespace, "refuse") };
  const withFaults = conformance({ ...harness, faults: refusing });
  const withoutFaults = conformance({ ...harness, faults: { ...refusing, kinds: [] } });
  const cases = withFaults.filter((one, index) => one.skip !== withoutFaults[index]?.skip);

  it.each(cases)("$title", ({ run }) => run());
});

describe("a server that is killed and comes back without its data", () => {
  it("tells the holder, serves the waiter and continues with higher tokens", async () => {
    await using fragile = await startLedgerServer();
    await using holder = new Holdfast(fragile.open("n"), { ttlMs: 3_000 });
    await using waiter = new Holdfast(fragile.open("n"), { ttlMs: 3_000 });
    const held = await holder.mutex("m").acquire();
    const { signal } = held;
    const waiting = waiter.mutex("m").acquire();
    await waitUntil(async () => (await waiter.inspect("m")).waiters.length === 1, {
      what: "a waiter",
    });
    await fragile.kill();
    await fragile.start();
    const next = await waiting;
    expect(next.token).toBeGreaterThan(held.token);
    // The store forgot both clients, so the holder may still trust its lease for a while.
    await waitUntil(() => signal.aborted, { what: "the holder is told" });
    expect(() => held.assertHeld()).toThrow(/lost/);
    expect(await next.release()).toBe(true);
  });

  it("causes no unhandled error in a process that holds and waits", async () => {
    await using fragile = await startLedgerServer();
    await using locks = new Holdfast(fragile.open("n"), { ttlMs: 4_000, storeTimeoutMs: 2_500 });
    const held = await locks.mutex("m").acquire({ fairness: "strict" });
    const waiting = locks.mutex("m").acquire({ fairness: "strict" });
    await fragile.kill();
    await expect(waiting).rejects.toThrow(/The store was silent/);
    await waitUntil(() => held.state === "lost", { what: "the lease ends" });
    expect(await held.release()).toBe(false);
    await expect(locks.mutex("m").tryAcquire()).rejects.toThrow(/store/);
  });
});
