import { beforeEach, describe, expect, it } from "vitest";
import { LockTrial } from "../../test/fixtures/lock-trial.js";
import { settled } from "../../test/fixtures/manual-runtime.js";
import { watch } from "../../test/fixtures/outcome.js";
import { InvalidOptionError, LeaseLostError } from "../errors/index.js";

const keepMs = 60_000;
let trial: LockTrial;

/** Work that another process does until the test ends it. */
function begin() {
  let end: (value: string) => void = () => {};
  let fail: (error: unknown) => void = () => {};
  const meta = { label: "worker" };
  const done = watch(
    trial.others.once(
      "job",
      () =>
        new Promise<string>((resolve, reject) => {
          end = resolve;
          fail = reject;
        }),
      { keepMs, meta },
    ),
  );
  return { done, end: (value: string) => end(value), fail: (error: unknown) => fail(error) };
}

beforeEach(() => {
  trial = new LockTrial();
});

describe("a once that is begun and finished apart", () => {
  it("leaves its mark when it is finished", async () => {
    const run = await trial.locks.beginOnce("o", { keepMs: 1_000 });
    if (!run.began) throw new Error("it was free");
    expect(await trial.others.beginOnce("o", { keepMs: 1_000 })).toMatchObject({
      began: false,
      state: "running",
    });
    await run.finish();
    await run.finish();
    await run.abandon();
    const late = await trial.others.beginOnce("o", { keepMs: 1_000 });
    expect(late).toMatchObject({ began: false, state: "done", token: run.token });
    expect(JSON.parse(JSON.stringify(late)).token).toBe(`${run.token}`);
    await late[Symbol.asyncDispose]();
  });

  it("is free for other calls when it is abandoned, or its block ends", async () => {
    for (const end of ["abandon", Symbol.asyncDispose] as const) {
      const run = await trial.locks.beginOnce("o", { keepMs: 1_000 });
      if (!run.began) throw new Error("it was free");
      await run[end]();
    }
    expect((await trial.others.beginOnce("o", { keepMs: 1_000 })).began).toBe(true);
  });

  it("is not finished where the store does not confirm the mark", async () => {
    const run = await trial.locks.beginOnce("o", { keepMs: 1_000 });
    if (!run.began) throw new Error("it was free");
    trial.arbiter.fate = "request broken";
    const unconfirmed = { code: "HF_STORE", outcome: "unknown", lockName: "o" };
    for (const _ of ["first", "again"]) {
      const finished = watch(run.finish());
      await trial.runtime.advance(5_000);
      expect(finished.error).toMatchObject(unconfirmed);
    }
  });

  it("cannot be finished after its lease was lost", async () => {
    const run = await trial.locks.beginOnce("o", { keepMs: 1_000 });
    if (!run.began) throw new Error("it was free");
    await trial.loseTouch();
    await expect(run.finish()).rejects.toMatchObject({ code: "HF_LEASE_LOST" });
    expect((await trial.others.beginOnce("o", { keepMs: 1_000 })).began).toBe(true);
  });
});

describe("the first call", () => {
  it("runs the work, and gets its value and token", async () => {
    const result = await trial.locks.once("job", (lease) => lease.token, { keepMs });
    expect(result).toEqual({ ran: true, value: expect.any(BigInt), token: expect.any(BigInt) });
    if (result.ran) expect(result.value).toBe(result.token);
  });

  it("leaves a mark for keepMs by success", async () => {
    const first = await trial.locks.once("job", () => 1, { keepMs, meta: { label: "first" } });
    const again = await trial.others.once("job", () => 2, { keepMs });
    expect(again).toMatchObject({ ran: false, state: "done", by: { label: "first" } });
    expect(again.token).toBe(first.token);
    await trial.runtime.advance(keepMs);
    expect(await trial.others.once("job", () => 3, { keepMs })).toMatchObject({ ran: true });
  });

  it("leaves none by failure: it throws, and the next one runs", async () => {
    const error = new Error("work");
    const failed = trial.locks.once("job", () => Promise.reject(error), { keepMs });
    await expect(failed).rejects.toBe(error);
    expect(await trial.others.once("job", () => 2, { keepMs })).toMatchObject({ ran: true });
  });

  it("leaves none when the lease was lost: it throws that, and the next one runs", async () => {
    const lost = watch(
      trial.locks.once(
        "job",
        () => {
          trial.runtime.block(40_000);
          return "too late";
        },
        { keepMs },
      ),
    );
    await settled();
    expect(lost.error).toBeInstanceOf(LeaseLostError);
    expect(lost.error).toMatchObject({ value: "too late", lockName: "job" });
    expect(await trial.others.once("job", () => 2, { keepMs })).toMatchObject({ ran: true });
  });
});

describe("the second call", () => {
  it("returns at once, and is told who is at it", async () => {
    const { done, end } = begin();
    await settled();
    const result = await trial.locks.once("job", () => "mine", { keepMs });
    expect(result).toMatchObject({ ran: false, state: "running", by: { label: "worker" } });
    end("theirs");
    await settled();
    expect(done.value).toMatchObject({ ran: true, value: "theirs", token: result.token });
  });

  it("returns at once also where waitMs is given as undefined", async () => {
    begin();
    await settled();
    const waitMs = undefined as unknown as number;
    const asked = watch(trial.locks.once("job", () => "mine", { keepMs, waitMs }));
    await settled();
    expect(asked.value).toMatchObject({ ran: false, state: "running" });
  });

  it("with waitMs waits for the outcome", async () => {
    const { end } = begin();
    await settled();
    const asked = watch(trial.locks.once("job", () => "mine", { keepMs, waitMs: 10_000 }));
    await trial.runtime.advance(5_000);
    expect(asked.state).toBe("pending");
    end("theirs");
    await trial.runtime.advance(0);
    expect(asked.value).toMatchObject({ ran: false, state: "done", by: { label: "worker" } });
  });

  it("with waitMs takes over when the first one failed", async () => {
    const { done, fail } = begin();
    await settled();
    const asked = watch(trial.locks.once("job", () => "mine", { keepMs, waitMs: 10_000 }));
    await trial.runtime.advance(1_000);
    fail(new Error("work"));
    await trial.runtime.advance(0);
    expect(done.state).toBe("rejected");
    expect(asked.value).toMatchObject({ ran: true, value: "mine" });
  });

  it("with waitMs is told that it still runs when the wait is over", async () => {
    begin();
    await settled();
    const asked = watch(trial.locks.once("job", () => "mine", { keepMs, waitMs: 1_000 }));
    await trial.runtime.advance(1_000);
    expect(asked.value).toMatchObject({ ran: false, state: "running", by: { label: "worker" } });
  });

  it("can be cancelled while it waits", async () => {
    begin();
    await settled();
    const controller = new AbortController();
    const { signal } = controller;
    const asked = watch(trial.locks.once("job", () => 1, { keepMs, waitMs: 9_000, signal }));
    await settled();
    const reason = new Error("enough");
    controller.abort(reason);
    await settled();
    expect(asked.error).toBe(reason);
  });
});

describe("a once", () => {
  it("cannot go on in another process, which could not leave its mark", async () => {
    const options = { keepMs, transferable: true };
    await expect(trial.locks.once("o", () => 7, options)).rejects.toThrow(InvalidOptionError);
  });

  it("has a key space of its own", async () => {
    await trial.others.mutex("job").acquire();
    expect(await trial.locks.once("job", () => 1, { keepMs })).toMatchObject({ ran: true });
    expect((await trial.locks.inspect("job", "once")).mark).toMatchObject({ remainingMs: keepMs });
  });

  it.each([undefined, 0, -1, Number.NaN, Number.POSITIVE_INFINITY, "60000"])(
    "needs to know how long to remember: %s",
    async (odd) => {
      const asked = trial.locks.once("job", () => 1, { keepMs: odd as number });
      await expect(asked).rejects.toBeInstanceOf(InvalidOptionError);
      await expect(asked).rejects.toMatchObject({ option: "keepMs" });
    },
  );
});
