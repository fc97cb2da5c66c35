import { beforeEach, describe, expect, it } from "vitest";
import { LockTrial } from "../../test/fixtures/lock-trial.js";
import { settled } from "../../test/fixtures/manual-runtime.js";
import { watch } from "../../test/fixtures/outcome.js";
import { Holdfast } from "../api/holdfast.js";
import { DeadlockError, LeaseLostError, UnsupportedError } from "../errors/index.js";
import type { Lease } from "../lease/lease.js";
import { memoryStore } from "../stores/memory/index.js";
import type { Lock } from "./lock.js";

const reentrant = true;
let trial: LockTrial;
let mutex: Lock;

const isHeld = async (): Promise<boolean> => (await trial.others.inspect("x")).holders.length > 0;

beforeEach(() => {
  trial = new LockTrial();
  mutex = trial.locks.mutex("x", { reentrant });
});

describe("a nested call that would wait for the run around it", () => {
  it.each([
    ["run", (lock: Lock) => lock.run(() => 1)],
    ["acquire", (lock: Lock) => lock.acquire({ waitMs: 100 })],
    ["all", (lock: Lock) => trial.locks.all([trial.locks.mutex("a"), lock]).acquire()],
  ])("throws at once, by %s", async (_, call) => {
    const plain = trial.locks.mutex("x");
    const nested = plain.run(async () => {
      await settled();
      return call(plain);
    });
    await expect(nested).rejects.toMatchObject({ code: "HF_WOULD_DEADLOCK", lockName: "x" });
    await expect(nested).rejects.toThrow("reentrant: true for both calls");
    expect(await isHeld()).toBe(false);
    expect((await trial.others.inspect("a")).holders).toEqual([]);
  });

  it("throws inside a once or a lead of the same name", async () => {
    const { locks } = trial;
    const wait = { keepMs: 60_000, waitMs: 1_000 };
    const job = locks.once("x", () => locks.once("x", () => {}, wait), wait);
    await expect(job).rejects.toMatchObject({ code: "HF_WOULD_DEADLOCK", lockName: "x" });
    await expect(job).rejects.toThrow(
      'This call would wait for the once around it, which holds once "x". Make the call after',
    );
    const apart = locks.once("x", () => locks.beginOnce("x", wait), wait);
    await expect(apart).rejects.toBeInstanceOf(DeadlockError);
    const seat = locks.election("x", { reentrant: true });
    for (const call of [() => seat.lead(() => {}), () => seat.campaign()]) {
      const term = seat.lead<unknown>(async () => {
        await settled();
        return call();
      });
      await expect(term).rejects.toThrow(
        'This call would wait for the lead around it, which holds election "x". Make the call',
      );
      await expect(term).rejects.not.toThrow("reentrant");
    }
    expect(await seat.leader()).toBe(null);
    expect((await trial.others.inspect("x", "once")).mark).toBe(null);
  });

  it("does not throw for a once or a lead of another name, or that does not wait", async () => {
    const { locks } = trial;
    const keep = { keepMs: 60_000 };
    const nested = await locks.once("x", () => locks.once("x", () => {}, keep), keep);
    expect(nested).toMatchObject({ ran: true, value: { ran: false, state: "running" } });
    const lead = locks.election("x");
    const value = await lead.lead(() => {
      return locks.mutex("x").run(() => locks.once("y", () => 7, { ...keep, waitMs: 1_000 }));
    });
    expect(value).toMatchObject({ ran: true, value: 7 });
    expect(await lead.lead(() => 8)).toBe(8);
  });

  it("throws where only one of the two is reentrant", async () => {
    const nested = mutex.run(() => trial.locks.mutex("x").acquire());
    await expect(nested).rejects.toThrow("reentrant: true for this call");
  });

  it("throws for permits that can never be there, and waits for those that can be", async () => {
    const semaphore = trial.locks.semaphore("s", 3);
    await semaphore.run(
      async () => {
        await (await semaphore.acquire()).release();
        await expect(semaphore.acquire({ weight: 2 })).rejects.toBeInstanceOf(DeadlockError);
      },
      { weight: 2 },
    );
    const { read, write } = trial.locks.readWrite("r");
    await read.run(async () => {
      await read.run(() => {});
      await expect(write.acquire()).rejects.toBeInstanceOf(DeadlockError);
    });
  });

  it("does not throw where it need not wait", async () => {
    const plain = trial.locks.mutex("x");
    await plain.run(async (lease) => {
      expect(await plain.tryAcquire()).toBeNull();
      await trial.locks.mutex("y").run(() => {});
      await lease.release();
      await plain.run(() => {});
    });
    await plain.run(() => {});
  });
});

describe("a nested call", () => {
  it("of run joins the run around it: same token, same signal, one release", async () => {
    await mutex.run(async (outer) => {
      const inner = await mutex.run(async (lease) => {
        expect([lease.token, lease.signal]).toEqual([outer.token, outer.signal]);
        return "inner";
      });
      expect(inner).toBe("inner");
      expect(outer.state).toBe("held");
      expect(await isHeld()).toBe(true);
    });
    expect(await isHeld()).toBe(false);
    expect(trial.arbiter.sentOf("acquire")).toHaveLength(1);
    expect(trial.arbiter.sentOf("release")).toHaveLength(1);
  });

  it("of acquire and tryAcquire joins, too, and their release only counts down", async () => {
    await mutex.run(async (outer) => {
      const [one, two] = [await mutex.acquire(), await mutex.tryAcquire()];
      expect(one.token).toBe(outer.token);
      expect(two?.token).toBe(outer.token);
      expect(await one.release()).toBe(true);
      expect(await one.release()).toBe(true);
      await two?.release();
      expect([one.state, outer.state]).toEqual(["released", "held"]);
      expect(await isHeld()).toBe(true);
    });
    expect(await isHeld()).toBe(false);
  });

  it("through another object of the same lock joins; another name or Holdfast not", async () => {
    await mutex.run(async (outer) => {
      const again = await trial.locks.mutex("x", { reentrant }).tryAcquire();
      expect(again?.token).toBe(outer.token);
      const other = await trial.locks.mutex("y", { reentrant }).acquire();
      expect(other.token).not.toBe(outer.token);
      await other.release();
      expect(await trial.others.mutex("x", { reentrant }).tryAcquire()).toBeNull();
    });
  });

  it("of the outermost lock joins through other runs in between", async () => {
    await mutex.run(async (outer) => {
      await trial.locks.mutex("y", { reentrant }).run(async () => {
        await mutex.run(async (inner) => {
          expect(inner.token).toBe(outer.token);
        });
      });
    });
  });

  it("that did not ask to join waits like any other call", async () => {
    await mutex.run(async () => {
      expect(await trial.locks.mutex("x").tryAcquire()).toBeNull();
    });
    await trial.locks.mutex("x").run(async () => {
      expect(await mutex.tryAcquire()).toBeNull();
    });
  });

  it("whose signal has aborted joins nothing", async () => {
    await mutex.run(async () => {
      const signal = AbortSignal.abort("enough");
      await expect(mutex.acquire({ signal })).rejects.toBe("enough");
    });
  });

  it("keeps the lock when it outlives the run around it, until it is released", async () => {
    let inner: Lease | undefined;
    await mutex.run(async () => {
      inner = await mutex.acquire();
    });
    expect(inner?.state).toBe("held");
    expect(await isHeld()).toBe(true);
    await inner?.release();
    expect(await isHeld()).toBe(false);
  });
});

describe("only run opens a context", () => {
  it("acquire does not", async () => {
    const lease = await mutex.acquire();
    expect(await mutex.tryAcquire()).toBeNull();
    await lease.release();
  });

  it("and a call that outlives it acquires anew", async () => {
    let goOn: () => void = () => {};
    let late: Promise<Lease> | undefined;
    let token = 0n;
    await mutex.run(async (lease) => {
      token = lease.token;
      late = new Promise<void>((resume) => {
        goOn = resume;
      }).then(() => mutex.acquire());
    });
    goOn();
    const lease = await late;
    expect(lease?.token).toBeGreaterThan(token);
    expect(lease?.state).toBe("held");
  });

  it("each of two at the same time has its own", async () => {
    const runs = [1, 2].map(() =>
      mutex.run(async (outer) => {
        await settled();
        return mutex.run((inner) => [outer.token, inner.token]);
      }),
    );
    await runs[0];
    await trial.runtime.advance(1);
    const tokens = await Promise.all(runs);
    for (const [outer, inner] of tokens) expect(inner).toBe(outer);
    expect(tokens[0]?.[0]).not.toBe(tokens[1]?.[0]);
  });
});

it("all runs around a call count: a semaphore that is nested too deep is refused", async () => {
  const semaphore = trial.locks.semaphore("s", 2);
  await semaphore.run(() =>
    semaphore.run(async () => {
      await expect(semaphore.run(() => {})).rejects.toMatchObject({ code: "HF_WOULD_DEADLOCK" });
      expect(await semaphore.tryAcquire()).toBeNull();
    }),
  );
});

describe("a read-write lock", () => {
  it("does not advise to join for a write inside a read: that is refused, too", async () => {
    const { read, write } = trial.locks.readWrite("x");
    const { message } = await read.run(() => write.run(() => {})).catch((error) => error);
    expect(message).toBe(
      'This call would wait for the run around it, which holds lock "x". ' +
        "Take the write side first, or make the call after that run.",
    );
  });

  it("lets a read inside a write join", async () => {
    const { read, write } = trial.locks.readWrite("x", { reentrant });
    await write.run(async (outer) => {
      await read.run((inner) => expect(inner.token).toBe(outer.token));
      await write.run((inner) => expect(inner.token).toBe(outer.token));
    });
  });

  it("refuses a write inside a read at once: it would wait for itself", async () => {
    const { read, write } = trial.locks.readWrite("x", { reentrant });
    await read.run(async () => {
      await expect(write.run(() => {})).rejects.toBeInstanceOf(UnsupportedError);
      await expect(write.acquire()).rejects.toMatchObject({ lockName: "x" });
      await expect(write.tryAcquire()).rejects.toBeInstanceOf(UnsupportedError);
      await read.run(() => {});
    });
  });
});

describe("a run whose lease is no more", () => {
  it("because it was released early is not joined: the next call acquires anew", async () => {
    await mutex.run(async (outer) => {
      await outer.release();
      const stolen = await trial.others.mutex("x").acquire();
      expect(await mutex.tryAcquire()).toBeNull();
      await stolen.release();
      const anew = await mutex.acquire();
      expect(anew.token).toBeGreaterThan(outer.token);
      await anew.release();
    });
  });

  it("because it was lost is not joined either: the call throws", async () => {
    const run = watch(
      mutex.run(async () => {
        await trial.loseTouch();
        let hasBegun = false;
        const inner = mutex.run(() => {
          hasBegun = true;
        });
        await expect(inner).rejects.toBeInstanceOf(LeaseLostError);
        expect(hasBegun).toBe(false);
        return "outer";
      }),
    );
    await trial.runtime.advance(31_000);
    await settled();
    expect(run.error).toMatchObject({ code: "HF_LEASE_LOST", value: "outer" });
  });
});

describe("a joined lease", () => {
  it("is lost with the one it joined", async () => {
    const run = watch(
      mutex.run(async () => {
        const inner = await mutex.acquire();
        trial.runtime.block(31_000);
        expect(inner.state).toBe("lost");
        expect(() => inner.assertHeld()).toThrow(LeaseLostError);
        expect(await inner.release()).toBe(false);
      }),
    );
    await settled();
    expect(run.error).toBeInstanceOf(LeaseLostError);
  });

  it("that was released is held no more, though the outer one is", async () => {
    await mutex.run(async (outer) => {
      const inner = await mutex.acquire();
      await inner.release();
      expect(inner.state).toBe("released");
      expect(inner.remainingMs()).toBe(0);
      expect(() => inner.assertHeld()).toThrow(LeaseLostError);
      await expect(inner.renew()).rejects.toBeInstanceOf(LeaseLostError);
      expect(() => outer.assertHeld()).not.toThrow();
    });
  });
});

describe("a call that joins a run", () => {
  it("asks for no more than was granted to the run", async () => {
    const locks = new Holdfast(memoryStore(), { reentrant: true });
    const semaphore = locks.semaphore("s", 3);
    const inner = (weight: number) => semaphore.run(() => weight, { weight, waitMs: 50 });
    await semaphore.run(async () => {
      await expect(inner(1)).resolves.toBe(1);
      await expect(inner(3)).rejects.toMatchObject({ code: "HF_UNSUPPORTED" });
    });
    await expect(semaphore.run(() => inner(2), { weight: 2 })).resolves.toBe(2);
    await locks.close();
  });

  it("counts for members of several at once by their own options", async () => {
    const locks = new Holdfast(memoryStore());
    const [again, plain] = [locks.mutex("a", { reentrant: true }), locks.mutex("b")];
    const both = locks.all([again, plain]);
    const nested = () => again.run(() => "inside", { waitMs: 50 });
    await expect(both.run(nested)).resolves.toBe("inside");
    await expect(both.run(() => plain.tryAcquire())).resolves.toBeNull();
    await locks.close();
  });
});
