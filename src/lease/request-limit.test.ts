import { beforeEach, describe, expect, it } from "vitest";
import { ManualRuntime, settled } from "../../test/fixtures/manual-runtime.js";
import { watch } from "../../test/fixtures/outcome.js";
import { ScriptedStore } from "../../test/fixtures/scripted-store.js";
import { Holdfast } from "../api/holdfast.js";
import type { AcquireResult, Claim, Traits, Wait } from "../contract/store.js";
import { AcquireTimeoutError, StoreError } from "../errors/index.js";

const TRAITS: Traits = {
  scope: "network",
  modes: ["exclusive", "shared"],
  fifo: true,
  tokenSpan: true,
  transferable: true,
  marks: true,
  minTtlMs: 10,
};

/** A store across the network that may ignore the end of a wait. */
class NetworkStore extends ScriptedStore {
  override readonly traits: Traits = TRAITS;
  isDeaf = true;

  override acquire(claim: Claim, wait: Wait | null): Promise<AcquireResult> {
    return super.acquire(claim, this.isDeaf && wait ? deaf(wait) : wait);
  }
}

/** Reports pass, and the end of the wait is not heard of. */
function deaf(wait: Wait): Wait {
  const { untilMs } = wait;
  // The timer of the wait runs all the same.
  wait.onEnd(() => {});
  const report: Wait["report"] = (...told) => wait.report(...told);
  return { untilMs, ended: false, onEnd: () => {}, report };
}

let runtime: ManualRuntime;
let store: NetworkStore;
let locks: Holdfast;

beforeEach(() => {
  runtime = new ManualRuntime();
  store = new NetworkStore(runtime);
  locks = new Holdfast(store);
});

describe("a call to a store that says nothing", () => {
  it("ends where the store only looks at the wait, and the loop goes on", async () => {
    store.acquire = () => new Promise(() => {});
    const asked = watch(locks.mutex("m").acquire({ waitMs: 500, storeTimeoutMs: 100_000 }));
    await runtime.advance(749);
    expect(asked.state).toBe("pending");
    await runtime.advance(1_000);
    expect(asked.error).toBeInstanceOf(StoreError);
  });

  it("says for how long the store grants no free lock", async () => {
    const asked = watch(locks.mutex("m").acquire({ waitMs: 500 }));
    store.latest.wait?.report(null, null, 30_000);
    await runtime.advance(750);
    expect(asked.error).toBeInstanceOf(StoreError);
    expect(asked.error).toMatchObject({ outcome: "not_applied" });
  });

  it("asks it no more after its end", async () => {
    const asked = watch(locks.mutex("m").acquire({ waitMs: 500 }));
    await runtime.advance(750);
    expect(asked.error).toBeInstanceOf(StoreError);
    store.latest.busy();
    await runtime.advance(10);
    expect(store.asked).toHaveLength(1);
  });

  it("is safe from a search for the reason that throws", async () => {
    Object.assign(store, {
      explain: () => {
        throw new Error("odd");
      },
    });
    const asked = watch(locks.mutex("m").acquire({ waitMs: 500 }));
    await runtime.advance(750);
    expect(asked.error).toBeInstanceOf(StoreError);
  });

  it.each([0, 500, 60_000])("ends 250 ms after waitMs %d", async (waitMs) => {
    const asked = watch(locks.mutex("m").acquire({ waitMs, storeTimeoutMs: 100_000 }));
    await runtime.advance(waitMs + 249);
    expect(asked.error).toBeUndefined();
    await runtime.advance(1);
    expect(asked.error).toBeInstanceOf(StoreError);
    expect(asked.error).toMatchObject({
      message: `Lock "m": The store did not answer within ${waitMs + 250} ms.`,
      outcome: "unknown",
      retryable: true,
    });
  });

  it.each([undefined, 3_000])("that does not wait ends after storeTimeoutMs %s", async (given) => {
    const asked = watch(locks.mutex("m").tryAcquire({ storeTimeoutMs: given }));
    const { storeTimeoutMs } = store.latest.claim;
    expect(storeTimeoutMs).toBe(given ?? 1_000);
    await runtime.advance(storeTimeoutMs - 1);
    expect(asked.error).toBeUndefined();
    await runtime.advance(1);
    expect(asked.error).toBeInstanceOf(StoreError);
  });

  it("gives the reason that the store finds in time", async () => {
    store.explain = async ({ message, outcome }) =>
      new StoreError(`${message} No server at a:1.`, { outcome });
    const asked = watch(locks.mutex("m").acquire({ waitMs: 500 }));
    await runtime.advance(750);
    expect(String(asked.error)).toContain("No server at a:1.");
  });

  it("says that the lock is held if the store said so of late", async () => {
    const asked = watch(locks.mutex("m").acquire({ waitMs: 500 }));
    store.latest.wait?.report(null, 1);
    await runtime.advance(750);
    expect(asked.error).toBeInstanceOf(AcquireTimeoutError);
  });

  it("ends soon after its signal has aborted", async () => {
    const controller = new AbortController();
    const asked = watch(locks.mutex("m").acquire({ signal: controller.signal }));
    controller.abort("enough");
    await runtime.advance(250);
    expect(asked.error).toBe("enough");
  });

  it("gives back a grant that comes later", async () => {
    const asked = watch(locks.mutex("m").acquire({ waitMs: 500 }));
    await runtime.advance(750);
    expect(asked.error).toBeInstanceOf(StoreError);
    const grant = store.latest.grant(7n);
    await settled();
    expect(store.released.map((released) => released.grant)).toEqual([grant]);
    expect(locks.held()).toEqual([]);
  });

  it("does not end the calls behind it, which ask themselves", async () => {
    const first = watch(locks.mutex("m").acquire({ waitMs: 500 }));
    const second = watch(locks.mutex("m").acquire({ waitMs: 5_000 }));
    await runtime.advance(750);
    expect(first.error).toBeInstanceOf(StoreError);
    expect(second.error).toBeUndefined();
    expect(store.asked).toHaveLength(2);
    store.latest.grant(7n);
    await settled();
    expect(second.value?.token).toBe(7n);
  });

  it("of a process that was blocked gets time to read the answer", async () => {
    const asked = watch(locks.mutex("m").acquire({ waitMs: 0 }));
    runtime.block(10_000);
    await runtime.advance(100);
    expect(asked.error).toBeUndefined();
    store.latest.grant(7n);
    await settled();
    expect(asked.value?.token).toBe(7n);
  });

  it("keeps no timer after its answer", async () => {
    const before = runtime.alarms;
    const asked = watch(locks.mutex("m").acquire({ renew: false }));
    store.latest.grant(7n);
    await settled();
    await asked.value?.release();
    expect(runtime.keepsAlive).toBe(false);
    expect(runtime.alarms - before).toBeLessThanOrEqual(2);
  });
});

it("several locks at once end in time, and leave their releases to the store", async () => {
  store.isDeaf = false;
  store.onRelease = () => new Promise(() => {});
  const asked = watch(locks.all([locks.mutex("a"), locks.mutex("b")]).acquire({ waitMs: 500 }));
  await settled();
  store.latest.grant(7n);
  await settled();
  await runtime.advance(750);
  expect(asked.error).toBeInstanceOf(StoreError);
  expect(store.released).toHaveLength(1);
});
