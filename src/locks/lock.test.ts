import { beforeEach, describe, expect, it, vi } from "vitest";
import { LockTrial } from "../../test/fixtures/lock-trial.js";
import { watch } from "../../test/fixtures/outcome.js";
import { AcquireTimeoutError, InvalidOptionError, StoreError } from "../errors/index.js";

let trial: LockTrial;

beforeEach(() => {
  trial = new LockTrial();
});

describe("tryAcquire with waitMs", () => {
  it("waits for the waitMs of the call, not of a default, then gives null", async () => {
    await trial.others.mutex("x").acquire();
    const mutex = trial.locks.mutex("x", { waitMs: 60_000 });
    expect(await mutex.tryAcquire()).toBeNull();
    const asked = watch(mutex.tryAcquire({ waitMs: 1_000 }));
    await trial.runtime.advance(999);
    expect(asked.state).toBe("pending");
    await trial.runtime.advance(1);
    expect(asked.value).toBeNull();
  });

  it("with waitMs has a lock that becomes free meanwhile", async () => {
    const held = await trial.others.mutex("x").acquire();
    const asked = watch(trial.locks.mutex("x").tryAcquire({ waitMs: 1_000 }));
    await trial.runtime.advance(500);
    await held.release();
    await trial.runtime.advance(0);
    expect(asked.value?.state).toBe("held");
  });
});

describe("a release that is only sent", () => {
  const sent = { release: "sent" } as const;

  it("is one round trip for each run, and each request travels behind the release", async () => {
    await trial.locks.inspect("warm");
    trial.arbiter.latencyMs = 10;
    const mutex = trial.locks.mutex("x", sent);
    const beforeMs = trial.runtime.nowMs;
    const done = watch(
      (async () => {
        for (let round = 0; round < 5; round += 1) await mutex.run(() => {});
      })(),
    );
    await trial.runtime.advance(100);
    expect(done.state).toBe("resolved");
    expect(trial.runtime.nowMs - beforeMs).toBe(100);
    const types = trial.arbiter.sent.map(({ type }) => type).slice(-10);
    expect(types).toEqual(Array.from({ length: 5 }, () => ["acquire", "release"]).flat());
  });

  it.each(["reply broken", "request broken"] as const)(
    "does not make its own process find the lock held (%s)",
    async (fate) => {
      const mutex = trial.locks.mutex("x", sent);
      await mutex.run(() => {});
      trial.arbiter.next("release", fate);
      expect(await mutex.run(() => 7)).toBe(7);
      const tried = watch(mutex.tryAcquire());
      await trial.runtime.advance(200);
      expect(tried.value?.state).toBe("held");
      await tried.value?.release();
      await trial.runtime.advance(1_000);
      expect(await trial.others.mutex("x").tryAcquire()).not.toBeNull();
    },
  );

  it("of a once waits for the answer, which says whether the mark is there", async () => {
    await trial.locks.inspect("warm");
    trial.arbiter.latencyMs = 10;
    const options = { ...sent, keepMs: 60_000 };
    const done = watch(trial.locks.once("x", () => 7, options));
    await trial.runtime.advance(39);
    expect(done.state).toBe("pending");
    await trial.runtime.advance(1);
    expect(done.value).toMatchObject({ ran: true, value: 7 });
  });
});

describe("tryRun", () => {
  it("runs the body if the lock is free, and says what came out of it", async () => {
    const mutex = trial.locks.mutex("x");
    expect(await mutex.tryRun((lease) => lease.state)).toEqual({ ran: true, value: "held" });
    expect(await mutex.isHeld()).toBe(false);
    await expect(mutex.tryRun(() => Promise.reject(new Error("work")))).rejects.toThrow("work");
    expect(await mutex.isHeld()).toBe(false);
  });

  it("runs nothing while the lock is held, and names the holder", async () => {
    const held = await trial.others.mutex("x").acquire({ meta: { label: "backup" } });
    const body = vi.fn();
    const result = await trial.locks.mutex("x").tryRun(body);
    const holder = { token: held.token, meta: { label: "backup" } };
    expect(result).toMatchObject({ ran: false, holder });
    expect(JSON.parse(JSON.stringify(result)).holder.token).toBe(`${held.token}`);
    expect(body).not.toHaveBeenCalled();
    expect(await trial.locks.mutex("x").isHeld()).toBe(true);
  });

  it.each(["run", "tryRun"] as const)("needs a body before it acquires (%s)", async (verb) => {
    const call = trial.locks.mutex("x")[verb](undefined as never);
    await expect(call).rejects.toMatchObject({ code: "HF_INVALID_OPTION", option: "body" });
    expect(trial.arbiter.sentOf("acquire")).toEqual([]);
  });
});

describe("acquire", () => {
  it("waits for a minute by default: longer than the lease of a crashed holder", async () => {
    await trial.others.mutex("x").acquire();
    const asked = watch(trial.locks.mutex("x").acquire());
    await trial.runtime.advance(59_999);
    expect(asked.state).toBe("pending");
    await trial.runtime.advance(1);
    expect(asked.error).toMatchObject({ code: "HF_ACQUIRE_TIMEOUT", waitMs: 60_000 });
  });

  it("waits for ever when told so, and is served when the lock is free", async () => {
    const held = await trial.others.mutex("x").acquire();
    const asked = watch(trial.locks.mutex("x").acquire({ waitMs: Number.POSITIVE_INFINITY }));
    await trial.runtime.advance(3_600_000);
    expect(asked.state).toBe("pending");
    await held.release();
    await trial.runtime.advance(0);
    expect(asked.value?.token).toBeGreaterThan(held.token);
  });

  it.each(["bounded", "strict"] as const)(
    "has a free lock although the answer takes longer than waitMs (%s)",
    async (fairness) => {
      trial.arbiter.latencyMs = 5;
      const asked = watch(trial.locks.mutex("x").acquire({ waitMs: 1, fairness }));
      await trial.runtime.advance(100);
      expect(asked.value?.state).toBe("held");
    },
  );

  it.each(["bounded", "strict"] as const)(
    "tells an outage as what it is, from the start or in the middle of the wait (%s)",
    async (fairness) => {
      await trial.others.mutex("x").acquire();
      const mutex = trial.locks.mutex("x", { waitMs: 5_000, fairness });
      const inTheMiddle = watch(mutex.acquire());
      await trial.runtime.advance(100);
      trial.arbiter.fate = "request broken";
      const fromTheStart = watch(mutex.acquire());
      await trial.runtime.advance(8_000);
      expect(inTheMiddle.error).toMatchObject({ code: "HF_STORE", lockName: "x" });
      expect(fromTheStart.error).toMatchObject({ code: "HF_STORE", lockName: "x" });
    },
  );

  it("that waits for a store which is away makes no busy lock for a try", async () => {
    trial.arbiter.fate = "request lost";
    void watch(trial.locks.mutex("x").acquire());
    await trial.runtime.advance(100);
    const tried = watch(trial.locks.mutex("x").tryAcquire());
    await trial.runtime.advance(10_000);
    expect(tried.error).toMatchObject({ code: "HF_STORE" });
  });

  it("throws after waitMs, and names the holder", async () => {
    const held = await trial.others.mutex("x").acquire({ meta: { label: "backup" } });
    const asked = watch(trial.locks.mutex("x").acquire({ waitMs: 1_000 }));
    await trial.runtime.advance(999);
    expect(asked.state).toBe("pending");
    await trial.runtime.advance(1);
    expect(asked.error).toBeInstanceOf(AcquireTimeoutError);
    expect(asked.error).toMatchObject({ lockName: "x", store: "ledger", waitMs: 1_000 });
    expect(asked.error).toMatchObject({ holder: { token: held.token, meta: { label: "backup" } } });
    expect((asked.error as Error).message).toContain("backup");
    expect((await trial.others.inspect("x")).waiters).toEqual([]);
  });

  it("says that this very process is the holder", async () => {
    const held = await trial.locks.mutex("x").acquire({ meta: { label: "backup" } });
    const calls = [
      trial.locks.mutex("x").acquire({ waitMs: 1_000 }),
      // A request to the store, beside the turns of this process.
      trial.locks.mutex("x").acquire({ waitMs: 1_000, fairness: "strict" }),
      trial.locks.all([trial.locks.mutex("w"), trial.locks.mutex("x")]).acquire({ waitMs: 1_000 }),
    ].map((call) => watch<unknown>(call));
    const theirs = watch(trial.others.mutex("x").acquire({ waitMs: 1_000 }));
    await trial.runtime.advance(1_000);
    for (const { error } of calls) {
      expect(error).toMatchObject({ isOwn: true, holder: { token: held.token } });
      expect((error as Error).message).toContain("It is held by this very process, backup, ");
    }
    expect(theirs.error).toMatchObject({ isOwn: false, holder: { token: held.token } });
    expect((theirs.error as Error).message).not.toContain("this very process");
  });

  it("with waitMs 0 does not wait at all, and still throws", async () => {
    await trial.others.mutex("x").acquire();
    const asked = watch(trial.locks.mutex("x").acquire({ waitMs: 0 }));
    await trial.runtime.advance(0);
    expect(asked.error).toBeInstanceOf(AcquireTimeoutError);
  });

  it("rejects with the reason of its signal, before or while it waits", async () => {
    await trial.others.mutex("x").acquire();
    const reason = new Error("shutting down");
    const controller = new AbortController();
    const asked = watch(trial.locks.mutex("x").acquire({ signal: controller.signal }));
    await trial.runtime.advance(100);
    controller.abort(reason);
    await trial.runtime.advance(0);
    expect(asked.error).toBe(reason);
    expect((await trial.others.inspect("x")).waiters).toEqual([]);
    const sent = trial.arbiter.sent.length;
    await expect(trial.locks.mutex("x").acquire({ signal: controller.signal })).rejects.toBe(
      reason,
    );
    expect(trial.arbiter.sent).toHaveLength(sent);
  });

  it("is not ended by its signal once it holds", async () => {
    const controller = new AbortController();
    const lease = await trial.locks.mutex("x").acquire({ signal: controller.signal });
    controller.abort();
    await trial.runtime.advance(120_000);
    expect(lease.state).toBe("held");
  });

  it("tells which lock the store failed", async () => {
    await trial.locks.inspect("x");
    trial.arbiter.fate = "request broken";
    const asked = watch(trial.locks.mutex("job:7").acquire({ storeTimeoutMs: 1_000 }));
    await trial.runtime.advance(1_000);
    expect(asked.error).toBeInstanceOf(StoreError);
    expect(asked.error).toMatchObject({ lockName: "job:7", store: "ledger", outcome: "unknown" });
    expect((asked.error as Error).message).toContain('"job:7"');
  });
});

describe("tryAcquire", () => {
  it("is a lease or null, at once", async () => {
    const lease = await trial.locks.mutex("x").tryAcquire();
    expect(lease?.state).toBe("held");
    expect(await trial.others.mutex("x").tryAcquire()).toBeNull();
    expect(await trial.locks.mutex("x").tryAcquire()).toBeNull();
    await lease?.release();
    expect(await trial.others.mutex("x").tryAcquire()).not.toBeNull();
  });
});

describe("a read-write lock", () => {
  it("has many readers or one writer, and a mutex is its write side", async () => {
    const { read, write } = trial.locks.readWrite("x");
    const readers = [await read.acquire(), await trial.others.readWrite("x").read.acquire()];
    expect(await write.tryAcquire()).toBeNull();
    expect(await trial.others.mutex("x").tryAcquire()).toBeNull();
    for (const reader of readers) await reader.release();
    await write.acquire();
    expect(await read.tryAcquire()).toBeNull();
  });
});

describe("a semaphore", () => {
  it("gives out its permits by weight, and no more", async () => {
    const semaphore = trial.locks.semaphore("x", 5);
    const heavy = await semaphore.acquire({ weight: 3 });
    const light = await trial.others.semaphore("x", 5).acquire({ weight: 2 });
    expect(await semaphore.tryAcquire()).toBeNull();
    await light.release();
    expect(await semaphore.tryAcquire({ weight: 3 })).toBeNull();
    expect(await semaphore.tryAcquire({ weight: 2 })).not.toBeNull();
    await heavy.release();
  });

  it("with a smaller limit elsewhere holds everybody to that one", async () => {
    await trial.others.semaphore("x", 2).acquire();
    await trial.locks.semaphore("x", 9).acquire();
    expect(await trial.locks.semaphore("x", 9).tryAcquire()).toBeNull();
  });

  it("can take a weight as its default, within its limit", async () => {
    const all = await trial.locks.semaphore("x", 4, { weight: 4 }).acquire();
    expect(await trial.others.semaphore("x", 4).tryAcquire()).toBeNull();
    await all.release();
    expect(() => trial.locks.semaphore("x", 4, { weight: 5 })).toThrow(InvalidOptionError);
    const asked = trial.locks.semaphore("x", 4).acquire({ weight: 5 });
    await expect(asked).rejects.toMatchObject({ option: "weight", value: 5 });
  });

  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "3"])(
    "has no limit of %s",
    (limit) => {
      expect(() => trial.locks.semaphore("x", limit as number)).toThrow(InvalidOptionError);
    },
  );

  it("is the only lock with weights", async () => {
    const asked = trial.locks.mutex("x").acquire({ weight: 2 });
    await expect(asked).rejects.toMatchObject({ code: "HF_INVALID_OPTION", option: "weight" });
    expect(() => trial.locks.readWrite("x", { weight: 2 })).toThrow(InvalidOptionError);
  });
});
