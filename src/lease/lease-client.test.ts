import { beforeEach, describe, expect, it, vi } from "vitest";
import { LocalQueueTrial } from "../../test/fixtures/local-queue-trial.js";
import { settled } from "../../test/fixtures/manual-runtime.js";
import { watch } from "../../test/fixtures/outcome.js";
import type { Grant } from "../contract/store.js";
import { StoreError } from "../errors/index.js";
import type { Lease } from "./lease.js";

let trial: LocalQueueTrial;

beforeEach(() => {
  trial = new LocalQueueTrial();
});

describe("held", () => {
  it("has the leases of this moment, one for each lock", async () => {
    const mine = await trial.holdWith(10n);
    const asked = watch(trial.locks.readWrite("r").read.acquire());
    await settled();
    await trial.grant(20n);
    expect(new Set(trial.locks.held())).toEqual(new Set([mine.lease, asked.value]));
    await mine.lease.release();
    expect(trial.locks.held()).toEqual([asked.value]);
  });
});

describe("release", () => {
  it("may take as long as the lease lives, and 5 s at most", async () => {
    const long = await trial.holdWith(10n);
    await long.lease.release();
    const short = await trial.holdWith(20n, { ttlMs: 900 });
    await trial.runtime.advance(200);
    await short.lease.release();
    expect(trial.store.released.map(({ withinMs }) => withinMs)).toEqual([5_000, 700]);
  });

  it("that fails is no throw, and counts as released: the grant ends by itself", async () => {
    trial.store.onRelease = () => Promise.reject(new Error("down"));
    const { lease } = await trial.holdWith(10n);
    expect(await lease.release()).toBe(true);
    expect(lease.state).toBe("released");
  });

  describe("that is only sent", () => {
    const sent = { release: "sent" } as const;

    it("returns before the answer, and the lease has ended here", async () => {
      trial.store.onRelease = () => new Promise(() => {});
      const { lease } = await trial.holdWith(10n, sent);
      expect(await lease.release()).toBe(true);
      expect(await lease.release()).toBe(true);
      expect(lease.state).toBe("released");
      expect(trial.locks.held()).toEqual([]);
      expect(trial.store.released).toHaveLength(1);
    });

    it("is waited for by close", async () => {
      let answer: (wasHeld: boolean) => void = () => {};
      trial.store.onRelease = () => new Promise((resolve) => (answer = resolve));
      const { lease } = await trial.holdWith(10n, sent);
      await lease.release();
      const closed = watch(trial.locks.close());
      await settled();
      expect(closed.state).toBe("pending");
      answer(true);
      await settled();
      expect(trial.store.isClosed).toBe(true);
    });

    it("shows a loss that the store reports later", async () => {
      let answer: (wasHeld: boolean) => void = () => {};
      trial.store.onRelease = () => new Promise((resolve) => (answer = resolve));
      const { lease } = await trial.holdWith(10n, sent);
      expect(await lease.release()).toBe(true);
      answer(false);
      await settled();
      expect(lease.state).toBe("lost");
    });

    it("of a lease that is over is false", async () => {
      const { lease } = await trial.holdWith(10n, { ...sent, renew: false });
      await trial.runtime.advance(60_000);
      expect(await lease.release()).toBe(false);
    });

    it("waits for the answer if the store keeps no order", async () => {
      Object.assign(trial.store.traits, { ordersReleases: false });
      trial.store.onRelease = () => new Promise(() => {});
      const { lease } = await trial.holdWith(10n, sent);
      const released = watch(lease.release());
      await settled();
      expect(released.state).toBe("pending");
    });
  });

  it("that finds it gone is false, and the lease was lost", async () => {
    trial.store.onRelease = async () => false;
    const { lease } = await trial.holdWith(10n);
    expect(await lease.release()).toBe(false);
    expect(lease.state).toBe("lost");
  });
});

describe("the failure of a store", () => {
  const failure = new StoreError("It was silent.", { outcome: "unknown" });

  async function failed(): Promise<{ error?: unknown }> {
    const asked = watch(trial.locks.readWrite("x").read.acquire());
    await settled();
    trial.store.asked.at(-1)?.fail(failure);
    await settled();
    return asked;
  }

  it("is told with the reason that the store finds", async () => {
    const cause = new Error("connect ECONNREFUSED");
    trial.store.explain = async ({ message, outcome }) =>
      new StoreError(`${message} No server.`, { outcome, cause });
    const { error } = await failed();
    expect(error).toMatchObject({ message: 'Lock "x": It was silent. No server.', cause });
  });

  it("is told without one where the look fails, or takes too long", async () => {
    trial.store.explain = () => Promise.reject(new Error("no look"));
    expect((await failed()).error).toMatchObject({ message: 'Lock "x": It was silent.' });
    trial.store.explain = () => new Promise(() => {});
    const asked = await failed();
    expect(asked.error).toBeUndefined();
    await trial.runtime.advance(1_000);
    expect(asked.error).toMatchObject({ message: 'Lock "x": It was silent.' });
  });

  it("that will not pass is told at once", async () => {
    trial.store.explain = () => new Promise(() => {});
    const asked = watch(trial.locks.readWrite("x").read.acquire());
    await settled();
    trial.store.asked
      .at(-1)
      ?.fail(new StoreError("Refused.", { outcome: "not_applied", retryable: false }));
    await settled();
    expect(asked.error).toMatchObject({ message: 'Lock "x": Refused.' });
  });
});

describe("a store that grants no free lock", () => {
  const refusal = {
    code: "HF_STORE",
    outcome: "not_applied",
    retryable: true,
    lockName: "x",
    message: expect.stringContaining("grants no free lock for another"),
  };

  it("is no held lock to a call that does not wait", async () => {
    const asked = watch(trial.locks.mutex("x").tryAcquire());
    await settled();
    trial.store.latest.busy(null, 42_000);
    await settled();
    expect(asked.error).toMatchObject({ ...refusal, retryAfterMs: 42_000 });
  });

  it("is no held lock to calls whose time ends, in the store and in this process", async () => {
    const members = [trial.join({ waitMs: 500 }), trial.join({ waitMs: 600 })];
    await settled();
    trial.store.latest.wait?.report(null, 0, 42_000);
    await settled();
    trial.store.latest.wait?.report(null, 0, 42_000);
    const impatient = watch(trial.locks.mutex("x").tryAcquire());
    await trial.runtime.advance(500);
    expect(members[0]?.error).toMatchObject({ ...refusal, retryAfterMs: 41_500 });
    expect(impatient.error).toMatchObject(refusal);
    expect(members[1]?.state).toBe("pending");
    await trial.runtime.advance(100);
    expect(members[1]?.error).toMatchObject({ ...refusal, retryAfterMs: 41_400 });
  });

  it("is told by the last try of a call that has not heard from the store of late", async () => {
    const asked = watch(trial.locks.readWrite("x").read.acquire({ waitMs: 500 }));
    await trial.runtime.advance(500);
    trial.store.latest.wait?.report(null, 0, 42_000);
    await trial.runtime.advance(1);
    expect(asked.error).toMatchObject(refusal);
  });

  it("is forgotten once a holder is in the way", async () => {
    const asked = trial.join({ waitMs: 500 });
    await settled();
    trial.store.latest.wait?.report(null, 0, 42_000);
    const terms = { mode: "exclusive", weight: 1, limit: null, meta: {} } as const;
    trial.store.latest.wait?.report({ token: 1n, ...terms, heldMs: 1, remainingMs: 9 }, 0);
    await trial.runtime.advance(500);
    expect(asked.error).toMatchObject({ code: "HF_ACQUIRE_TIMEOUT" });
  });
});

describe("a grant that has ended on its way", () => {
  it("makes no lease: a call that waits asks again, under a new owner", async () => {
    const asked = trial.join();
    await settled();
    const ended = endedGrant(10n);
    await settled();
    expect(asked.state).toBe("pending");
    expect(trial.store.released).toMatchObject([{ grant: ended }]);
    expect(trial.store.latest.claim.owner).not.toBe(ended.claim.owner);
    await trial.grant(20n);
    expect([asked.lease.token, asked.lease.state]).toEqual([20n, "held"]);
  });

  it("makes no lease: a call that does not wait is told that the lock is held", async () => {
    const asked = watch(trial.locks.mutex("x").tryAcquire());
    await settled();
    const ended = endedGrant(10n);
    await settled();
    expect([asked.state, asked.value]).toEqual(["resolved", null]);
    expect(trial.store.released).toMatchObject([{ grant: ended }]);
    expect(trial.store.asked).toHaveLength(1);
  });

  it("ends a call whose wait ended meanwhile", async () => {
    const asked = trial.join({ waitMs: 500 });
    await settled();
    trial.store.latest.wait?.report(null, 0);
    trial.runtime.block(500);
    const ended = endedGrant(10n);
    await trial.runtime.advance(1);
    expect(asked.error).toMatchObject({ code: "HF_ACQUIRE_TIMEOUT" });
    expect(trial.store.released).toMatchObject([{ grant: ended }]);
  });

  it("is one that comes after a newer one of the same name", async () => {
    const strict = { fairness: "strict" } as const;
    const [first, second] = [trial.join(strict), trial.join(strict)];
    await settled();
    const [asked] = trial.store.asked;
    await trial.grant(20n);
    const late = asked?.grant(10n);
    await settled();
    expect([first.state, second.lease.state]).toEqual(["pending", "held"]);
    expect(trial.store.released).toMatchObject([{ grant: late }]);
    await second.lease.release();
    await trial.grant(30n);
    expect(first.lease.state).toBe("held");
  });

  it("is gone for a process that resumes it", async () => {
    const { lease } = await trial.holdWith(10n, { transferable: true });
    const handle = lease.detach();
    vi.spyOn(trial.store, "resume").mockImplementation(async (claim, token) => {
      const grant = trial.store.grantFor(claim, token);
      return Object.assign(grant, { deadlineMs: Number.NEGATIVE_INFINITY });
    });
    expect(await trial.locks.resume(handle)).toBeNull();
    expect(trial.store.released).toHaveLength(1);
    // Its release may be sent again, behind another resume.
    vi.spyOn(trial.store, "resume").mockImplementation(async (claim, token) => {
      return trial.store.grantFor(claim, token);
    });
    expect(await trial.locks.resume(handle)).toBeNull();
  });

  it.each([
    ["released", (lease: Lease) => lease.release()],
    ["lost", () => trial.runtime.advance(60_000)],
  ])("is one that is resumed while this process has it, if it is %s meanwhile", async (_, end) => {
    const { lease } = await trial.holdWith(10n, { transferable: true, maxHoldMs: 60_000 });
    let answer: () => void = () => {};
    vi.spyOn(trial.store, "resume").mockImplementation(async (claim, token) => {
      await new Promise<void>((resolve) => (answer = resolve));
      return trial.store.grantFor(claim, token);
    });
    const resumed = watch(trial.locks.resume(lease.handle ?? ""));
    await end(lease);
    answer();
    await settled();
    expect([resumed.state, resumed.value]).toEqual(["resolved", null]);
    expect(trial.locks.held()).toEqual([]);
    expect(trial.store.released).toHaveLength(2);
  });

  it.each([
    ["answered", () => Promise.resolve(true)],
    ["unanswered", () => new Promise<boolean>(() => {})],
    ["refused", () => Promise.reject(new StoreError("down", { outcome: "unknown" }))],
  ])("is one that this process released before it resumes it: release %s", async (_, answer) => {
    const { lease } = await trial.holdWith(10n, { transferable: true, release: "sent" });
    const { handle } = lease;
    trial.store.onRelease = answer;
    // The store may still have it, and run a release that is sent again behind the resume.
    vi.spyOn(trial.store, "resume").mockImplementation(async (claim, token) => {
      return trial.store.grantFor(claim, token);
    });
    await lease.release();
    expect(await trial.locks.resume(handle ?? "")).toBeNull();
    await trial.runtime.advance(9_000);
    expect(await trial.locks.resume(handle ?? "")).toBeNull();
    expect(trial.locks.held()).toEqual([]);
  });

  /** The store grants the latest request, and ends the grant before the caller can know. */
  function endedGrant(token: bigint): Grant {
    const grant = trial.store.latest.grant(token);
    grant.deadlineMs = Number.NEGATIVE_INFINITY;
    return grant;
  }
});

describe("close", () => {
  it("releases what is held, ends all waits and all timers, and closes the store", async () => {
    const first = await trial.holdWith(10n);
    const [second, third] = [trial.join(), trial.join()];
    await settled();
    await trial.locks.close();
    expect(first.lease.state).toBe("released");
    expect([second.error, third.error]).toMatchObject([
      { code: "HF_CLOSED" },
      { code: "HF_CLOSED" },
    ]);
    expect(trial.locks.held()).toEqual([]);
    expect(trial.store.isClosed).toBe(true);
    await settled();
    expect(trial.runtime.alarms).toBe(0);
  });

  it("asks no more for a call whose time ends in the same moment", async () => {
    const caller = trial.join({ waitMs: 50 });
    await settled();
    trial.store.latest.wait?.onEnd(() => {
      trial.store.latest.busy();
      void trial.locks.close();
    });
    await trial.runtime.advance(50);
    expect(caller.error).toMatchObject({ code: "HF_CLOSED" });
    expect(trial.store.asked.length).toBe(1);
  });

  it("waits for a release that is under way already", async () => {
    const { lease } = await trial.holdWith(10n);
    let answer: (wasHeld: boolean) => void = () => {};
    vi.spyOn(trial.store, "release").mockReturnValue(
      new Promise((resolve) => {
        answer = resolve;
      }),
    );
    const released = lease.release();
    const closed = watch(trial.locks.close());
    await settled();
    expect(trial.store.isClosed).toBe(false);
    answer(true);
    await settled();
    expect(closed.state).toBe("resolved");
    expect(await released).toBe(true);
  });

  it.each([
    ["for five seconds at most, also for a release that is under way already", null, 5_000],
    ["for a second where the store is out of reach", "ECONNREFUSED", 1_000],
  ])("waits %s", async (_title, why, limitMs) => {
    trial.store.explain = async (error) => (why ? new StoreError(why, error) : error);
    const first = await trial.holdWith(10n);
    const second = watch(trial.locks.readWrite("r").read.acquire());
    await settled();
    await trial.grant(20n);
    const release = vi.spyOn(trial.store, "release").mockReturnValue(new Promise(() => {}));
    void first.lease.release();
    const closed = watch(trial.locks.close());
    await trial.runtime.advance(limitMs - 1);
    expect(second.value?.state).toBe("released");
    expect(release.mock.calls.map(([, withinMs]) => withinMs)).toEqual([5_000, 5_000]);
    expect(trial.store.isClosed).toBe(false);
    await trial.runtime.advance(1);
    expect(trial.store.isClosed).toBe(true);
    expect(closed.state).toBe("resolved");
  });

  it("leaves nothing held when a turn was passed on in the same moment", async () => {
    const first = await trial.holdWith(10n);
    const members = [trial.join(), trial.join(), trial.join()];
    await settled();
    await first.lease.release();
    const grant = await trial.grant(20n);
    void members[0]?.lease.release();
    const closed = watch(trial.locks.close());
    await settled();
    expect(closed.state).toBe("resolved");
    expect(members.map(({ state }) => state)).toEqual(["resolved", "rejected", "rejected"]);
    expect(trial.store.released.map((release) => release.grant)).toContain(grant);
  });

  it("gives back what is granted only now", async () => {
    const asked = trial.join();
    await settled();
    const grant = trial.store.latest.grant(10n);
    const closed = watch(trial.locks.close());
    await settled();
    expect(asked.error).toMatchObject({ code: "HF_CLOSED" });
    expect(closed.state).toBe("resolved");
    expect(trial.store.released.map((release) => release.grant)).toEqual([grant]);
  });
});

describe("a store", () => {
  it("has one Holdfast: it tells one listener what becomes of its grants", async () => {
    const { Holdfast } = await import("../api/holdfast.js");
    expect(() => new Holdfast(trial.store)).toThrow("another Holdfast");
  });
});

describe("a signal", () => {
  it("ends a try that the store is slow to answer, and what comes later goes back", async () => {
    const controller = new AbortController();
    const asked = watch(trial.locks.mutex("x").tryAcquire({ signal: controller.signal }));
    await settled();
    const reason = new Error("enough");
    controller.abort(reason);
    await settled();
    expect(asked.error).toBe(reason);
    const grant = await trial.grant(10n);
    expect(trial.store.released).toMatchObject([{ grant }]);
    expect(trial.locks.held()).toEqual([]);
  });
});
