import { inspect } from "node:util";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LocalQueueTrial } from "../../test/fixtures/local-queue-trial.js";
import { settled } from "../../test/fixtures/manual-runtime.js";
import { watch } from "../../test/fixtures/outcome.js";
import {
  InvalidOptionError,
  LeaseLostError,
  StoreError,
  UnsupportedError,
} from "../errors/index.js";
import type { AcquireOptions } from "../options/options.js";
import { decodeHandle } from "./handle.js";
import type { Lease } from "./lease.js";

let trial: LocalQueueTrial;

async function take(given?: AcquireOptions): Promise<Lease> {
  return (await trial.holdWith(10n, given)).lease;
}

beforeEach(() => {
  trial = new LocalQueueTrial();
});

afterEach(() => {
  vi.unstubAllGlobals();
});

describe("a lease that is held", () => {
  it("says so, and for how long", async () => {
    const lease = await take();
    expect(lease).toMatchObject({ name: "x", token: 10n, state: "held", handle: null });
    expect(lease.remainingMs()).toBe(30_000);
    await trial.runtime.advance(4_000);
    expect(lease.remainingMs()).toBe(26_000);
    expect(() => lease.assertHeld()).not.toThrow();
  });

  it("is shown by console.log as in JSON", async () => {
    const lease = await take({ transferable: true });
    expect(inspect(lease)).toBe("{ name: 'x', token: '10', state: 'held', remainingMs: 30000 }");
  });

  it("does not fail in console.log where another object stands before it", async () => {
    const lease = await take();
    expect(inspect([new Proxy(lease, {}), Object.create(lease)])).toContain("releaseError");
  });

  it("is compared with the clock, not with a flag, right after the loop was blocked", async () => {
    const lease = await take();
    trial.runtime.block(30_000);
    const loss = { code: "HF_LEASE_LOST", reason: "expired", lockName: "x", token: 10n };
    expect(() => lease.assertHeld()).toThrow(expect.objectContaining(loss));
    expect(lease.state).toBe("lost");
    expect(lease.remainingMs()).toBe(0);
  });

  it("is compared with a clock that counts the sleep of the machine", async () => {
    const lease = await take();
    trial.runtime.sleep(30_000);
    expect(lease.state).toBe("lost");
  });

  it("is over to the millisecond", async () => {
    const lease = await take();
    trial.runtime.block(29_999);
    expect(lease.state).toBe("held");
    trial.runtime.block(1);
    expect(lease.state).toBe("lost");
  });
});

describe("the signal", () => {
  it("is made when it is first read, and then stays the same", async () => {
    const made = vi.fn();
    const Real = AbortController;
    vi.stubGlobal(
      "AbortController",
      class extends Real {
        constructor() {
          super();
          made();
        }
      },
    );
    const lease = await take();
    await trial.runtime.advance(60_000);
    expect(made).not.toHaveBeenCalled();
    expect(lease.signal).toBe(lease.signal);
    expect(made).toHaveBeenCalledTimes(1);
  });

  it("aborts at the deadline, with the loss as its reason", async () => {
    const lease = await take({ renew: false });
    const aborted = vi.fn();
    lease.signal.addEventListener("abort", aborted);
    await trial.runtime.advance(29_999);
    expect(aborted).not.toHaveBeenCalled();
    await trial.runtime.advance(1);
    expect(aborted).toHaveBeenCalledTimes(1);
    expect(lease.signal.reason).toBeInstanceOf(LeaseLostError);
    expect(() => lease.assertHeld()).toThrow(lease.signal.reason);
  });

  it("has aborted already for who looks late", async () => {
    const lease = await take({ renew: false });
    await trial.runtime.advance(60_000);
    expect(lease.signal.aborted).toBe(true);
    const blocked = await trial.holdWith(20n, { renew: false });
    trial.runtime.block(60_000);
    expect(blocked.lease.signal.aborted).toBe(true);
  });

  it("says when the lease ends, and not that it has ended", async () => {
    const { signal } = await take({ maxHoldMs: 20_000, graceMs: 5_000 });
    await trial.runtime.advance(15_000);
    expect(signal.reason.message).toBe(
      'The lease of lock "x" ends in 5000 ms: it reaches maxHoldMs then. ' +
        "Stop the work it guards, and check its token wherever it writes.",
    );
    const { lease } = await trial.holdWith(20n, { renew: false, graceMs: 5_000 });
    await trial.runtime.advance(25_000);
    expect(lease.signal.reason.message).toMatch(
      /^The lease of lock "x" ends in 5000 ms: it has not been renewed\. Stop the work/,
    );
    await trial.runtime.advance(5_000);
    expect(() => lease.assertHeld()).toThrow(/ is lost: it was not renewed before its deadline/);
  });

  it("aborts graceMs before, while the lease still holds", async () => {
    const lease = await take({ renew: false, graceMs: 5_000 });
    const { signal } = lease;
    await trial.runtime.advance(25_000);
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toMatchObject({ code: "HF_LEASE_LOST", reason: "expired" });
    expect(lease.state).toBe("held");
    expect(() => lease.assertHeld()).not.toThrow();
    expect(await lease.release()).toBe(true);
  });

  it("has aborted for who looks first within the grace", async () => {
    const lease = await take({ renew: false, graceMs: 5_000 });
    await trial.runtime.advance(25_000);
    expect(lease.signal.aborted).toBe(true);
  });

  it("does not abort by a release", async () => {
    const lease = await take();
    const { signal } = lease;
    await lease.release();
    await trial.runtime.advance(60_000);
    expect(signal.aborted).toBe(false);
  });
});

describe("release", () => {
  it("is done once, and answers every call alike", async () => {
    const lease = await take();
    expect(await Promise.all([lease.release(), lease.release()])).toEqual([true, true]);
    expect(await lease.release()).toBe(true);
    expect(trial.store.released).toHaveLength(1);
    expect(lease.state).toBe("released");
    expect(lease.remainingMs()).toBe(0);
    expect(() => lease.assertHeld()).toThrow("released");
  });

  it("of a lost lease is false, and stays lost", async () => {
    const lease = await take({ renew: false });
    await trial.runtime.advance(30_000);
    expect(await lease.release()).toBe(false);
    expect(lease.state).toBe("lost");
    trial.store.released.length = 0;
    await lease.release();
    expect(trial.store.released).toEqual([]);
  });

  it("that comes first in a blocked process finds the lease lost", async () => {
    const lease = await take();
    trial.runtime.block(31_000);
    expect(await lease.release()).toBe(false);
    expect(lease.state).toBe("lost");
  });

  it("comes by itself at the end of a block", async () => {
    const lease = await take();
    await lease[Symbol.asyncDispose]();
    expect(lease.state).toBe("released");
  });
});

describe("renew", () => {
  it("moves the deadline on at once, for the same time or another", async () => {
    const lease = await take();
    trial.runtime.block(10_000);
    await lease.renew();
    expect(lease.remainingMs()).toBe(30_000);
    trial.store.onRenew = async (grants) => grants.map((one) => trial.store.extend(one, 60_000));
    await lease.renew(60_000);
    expect(lease.remainingMs()).toBe(60_000);
  });

  it("throws what became of it", async () => {
    const lease = await take();
    trial.store.onRenew = () => Promise.reject(new Error("down"));
    await expect(lease.renew()).rejects.toMatchObject({ code: "HF_STORE", outcome: "unknown" });
    await expect(lease.renew()).rejects.toBeInstanceOf(StoreError);
    expect(lease.state).toBe("held");
    trial.store.onRenew = async (grants) => {
      return grants.map((one) => trial.store.end(one, "replaced"));
    };
    await expect(lease.renew()).rejects.toMatchObject({ reason: "replaced" });
    await expect(lease.renew()).rejects.toBeInstanceOf(LeaseLostError);
    expect(trial.store.renewed).toHaveLength(3);
  });

  it.each([0, -1, 9, Number.NaN, Number.POSITIVE_INFINITY, "30000", null])(
    "for %s is refused",
    async (ttlMs) => {
      const lease = await take();
      await expect(lease.renew(ttlMs as number)).rejects.toBeInstanceOf(InvalidOptionError);
      expect(trial.store.renewed).toEqual([]);
      expect(lease.state).toBe("held");
    },
  );
});

describe("a transferable lease", () => {
  it("has a handle, and can be detached: no renewal, no close, until its deadline", async () => {
    const lease = await take({ transferable: true });
    const handle = lease.detach();
    expect(handle).toBe(lease.handle);
    expect(decodeHandle(handle).token).toBe(10n);
    const closed = watch(trial.locks.close());
    await settled();
    expect(closed.state).toBe("resolved");
    expect(trial.store.released).toEqual([]);
    expect(lease.state).toBe("held");
    await trial.runtime.advance(30_000);
    expect(trial.store.renewed).toEqual([]);
    expect(lease.state).toBe("lost");
    expect(() => lease.assertHeld()).toThrow(LeaseLostError);
  });

  it("aborts its signal at the deadline also where it was detached", async () => {
    const lease = await take({ transferable: true });
    const { signal } = lease;
    lease.detach();
    await trial.runtime.advance(29_000);
    expect(signal.aborted).toBe(false);
    await trial.runtime.advance(1_000);
    expect(signal.reason).toMatchObject({ code: "HF_LEASE_LOST", reason: "expired" });
    expect(trial.store.released).toEqual([]);
  });

  it("is neither held, renewed nor released here once it is detached", async () => {
    const lease = await take({ transferable: true });
    lease.detach();
    expect(trial.locks.held()).toEqual([]);
    await expect(lease.renew()).rejects.toThrow(UnsupportedError);
    expect(await lease.release()).toBe(true);
    await lease[Symbol.asyncDispose]();
    await trial.locks.close();
    expect(trial.store.released).toEqual([]);
  });

  it("cannot be detached unless it is one, and held", async () => {
    const plain = await take();
    expect(() => plain.detach()).toThrow(UnsupportedError);
    const lease = (await trial.holdWith(20n, { transferable: true })).lease;
    await lease.release();
    expect(() => lease.detach()).toThrow(LeaseLostError);
  });
});
