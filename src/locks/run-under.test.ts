import { beforeEach, describe, expect, it } from "vitest";
import { LockTrial } from "../../test/fixtures/lock-trial.js";
import { settled } from "../../test/fixtures/manual-runtime.js";
import { watch } from "../../test/fixtures/outcome.js";
import { LeaseLostError } from "../errors/index.js";
import type { Lease } from "../lease/lease.js";

let trial: LockTrial;

/** A body that ends when the test says so. */
function body<T>() {
  let end: (value: T) => void = () => {};
  let fail: (error: unknown) => void = () => {};
  let lease: Lease | undefined;
  const work = (given: Lease): Promise<T> => {
    lease = given;
    return new Promise((resolve, reject) => {
      end = resolve;
      fail = reject;
    });
  };
  return {
    work,
    end: (value: T) => end(value),
    fail: (error: unknown) => fail(error),
    get lease(): Lease {
      if (!lease) throw new Error("the body has not begun");
      return lease;
    },
  };
}

beforeEach(() => {
  trial = new LockTrial();
});

describe("run", () => {
  it("gives what the body returns, and has released by then", async () => {
    const value = await trial.locks.mutex("x").run(async (lease) => {
      expect(lease.state).toBe("held");
      return 7;
    });
    expect(value).toBe(7);
    expect(await trial.locks.mutex("x").run(() => "sync")).toBe("sync");
    expect(trial.server.ledger.size).toBe(0);
  });

  it("throws what the body throws while held, and has released by then", async () => {
    const error = new Error("body");
    const run = trial.locks.mutex("x").run(() => {
      throw error;
    });
    await expect(run).rejects.toBe(error);
    expect(trial.server.ledger.size).toBe(0);
  });

  it("does not begin when the lock was not acquired", async () => {
    await trial.others.mutex("x").acquire();
    let hasBegun = false;
    const run = trial.locks.mutex("x").run(
      () => {
        hasBegun = true;
      },
      { waitMs: 0 },
    );
    await expect(run).rejects.toMatchObject({ code: "HF_ACQUIRE_TIMEOUT" });
    expect(hasBegun).toBe(false);
  });
});

describe("a lease that was lost before the body ended", () => {
  it("is told when the body is done, with its value", async () => {
    const { work, end } = body<string>();
    const run = watch(trial.locks.mutex("x").run(work));
    await settled();
    await trial.loseTouch();
    expect(run.state).toBe("pending");
    end("too late");
    await settled();
    expect(run.error).toBeInstanceOf(LeaseLostError);
    expect(run.error).toMatchObject({ reason: "expired", lockName: "x", value: "too late" });
    expect((run.error as LeaseLostError).token).toEqual(expect.any(BigInt));
  });

  it("is told with the body's error as its cause", async () => {
    const { work, fail } = body();
    const run = watch(trial.locks.mutex("x").run(work));
    await settled();
    await trial.loseTouch();
    const error = new Error("body");
    fail(error);
    await settled();
    expect(run.error).toBeInstanceOf(LeaseLostError);
    expect((run.error as Error).cause).toBe(error);
    expect(run.error).toMatchObject({ value: undefined });
  });

  it("is told as it is to a body that threw the very loss", async () => {
    const one = body();
    const run = watch(trial.locks.mutex("x").run(one.work));
    await settled();
    const { signal } = one.lease;
    await trial.loseTouch();
    one.fail(signal.reason);
    await settled();
    expect(run.error).toBe(signal.reason);
  });

  it("is noticed even when the body blocked and no timer could fire", async () => {
    const run = trial.locks.mutex("x").run(() => {
      trial.runtime.block(40_000);
      return "blocked";
    });
    await expect(run).rejects.toMatchObject({ code: "HF_LEASE_LOST", value: "blocked" });
  });

  it("is noticed at the release, when only the store knew, and names the lock", async () => {
    const one = body<number>();
    const run = watch(trial.locks.mutex("job:7").run(one.work));
    await settled();
    const { token } = one.lease;
    trial.arbiter.pushes = "kept";
    await trial.others.revoke("job:7", { token, reason: "stuck" });
    one.end(1);
    await settled();
    expect(run.error).toBeInstanceOf(LeaseLostError);
    expect(run.error).toMatchObject({ lockName: "job:7", token, value: 1 });
    expect((run.error as Error).message).toContain('"job:7"');
    expect(one.lease.state).toBe("lost");
  });

  it("by a revoke says why", async () => {
    const one = body();
    const run = watch(trial.locks.mutex("x").run(one.work));
    await settled();
    const { signal, token } = one.lease;
    await trial.others.revoke("x", { token, reason: "stuck deploy" });
    await settled();
    await trial.runtime.advance(0);
    expect(signal.aborted).toBe(true);
    expect((signal.reason as Error).message).toContain("stuck deploy");
    one.end(undefined);
    await settled();
    expect(run.error).toMatchObject({ reason: "revoked" });
  });
});

describe("a release that fails", () => {
  it("never takes the place of the value", async () => {
    const one = body<string>();
    const run = watch(trial.locks.mutex("x").run(one.work));
    await settled();
    trial.arbiter.fate = "request lost";
    one.end("done");
    await trial.runtime.advance(5_000);
    expect(run.value).toBe("done");
  });

  it("nor of the body's error", async () => {
    const one = body();
    const run = watch(trial.locks.mutex("x").run(one.work));
    await settled();
    trial.arbiter.fate = "request broken";
    const error = new Error("body");
    one.fail(error);
    await trial.runtime.advance(5_000);
    expect(run.error).toBe(error);
  });

  it("takes no longer than the lease lives", async () => {
    const one = body<string>();
    const run = watch(trial.locks.mutex("x", { ttlMs: 1_000 }).run(one.work));
    await settled();
    trial.arbiter.fate = "request lost";
    one.end("done");
    await trial.runtime.advance(1_000);
    expect(run.state).toBe("resolved");
  });
});
