import { AsyncLocalStorage } from "node:async_hooks";
import { type TracingChannel, tracingChannel } from "node:diagnostics_channel";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LockTrial } from "../../test/fixtures/lock-trial.js";
import { settled } from "../../test/fixtures/manual-runtime.js";
import { watch } from "../../test/fixtures/outcome.js";
import { channels, type RunEvent } from "../events/events.js";
import { events } from "../events/publish.js";

const runs: TracingChannel<unknown, RunEvent> = tracingChannel(channels.run);

let trial: LockTrial;
let steps: string[];
let ended: RunEvent[];

const tracers = {
  start: () => void steps.push("start"),
  end: () => void steps.push("end"),
  asyncStart: () => void steps.push("asyncStart"),
  asyncEnd: (event: RunEvent) => {
    steps.push("asyncEnd");
    ended.push({ ...event });
  },
  error: () => void steps.push("error"),
};

beforeEach(() => {
  trial = new LockTrial();
  steps = [];
  ended = [];
  runs.subscribe(tracers);
});

afterEach(() => {
  runs.unsubscribe(tracers);
});

describe("holdfast:run", () => {
  it("traces a run from before the lock is asked for until it is given back", async () => {
    const held = await trial.others.mutex("x").acquire();
    const run = watch(trial.locks.mutex("x").run(async ({ token }) => ({ token })));
    await settled();
    expect(steps).toEqual(["start", "end"]);
    await held.release();
    await trial.runtime.advance(0);
    expect(steps).toEqual(["start", "end", "asyncStart", "asyncEnd"]);
    const about = { name: "x", space: "lock", kind: "mutex", store: "ledger", namespace: "" };
    expect(ended).toEqual([
      { ...about, weight: 1, limit: null, outcome: "done", token: run.value?.token },
    ]);
  });

  it("tells how each run ended", async () => {
    const { locks, others } = trial;
    const mutex = locks.mutex("x");
    const failure = new Error("no");
    await expect(mutex.run(() => Promise.reject(failure))).rejects.toBe(failure);
    let finish = (): void => {};
    const working = new Promise<void>((resume) => {
      finish = resume;
    });
    void watch(mutex.run(() => working));
    await settled();
    await trial.loseTouch();
    finish();
    await settled();
    await others.mutex("y").acquire();
    await locks.mutex("y").tryRun(() => {});
    await expect(locks.mutex("y").run(() => {}, { waitMs: 0 })).rejects.toThrow("not acquired");
    expect(ended.map(({ outcome }) => outcome)).toEqual(["failed", "lost", "not_run", "not_run"]);
    expect(steps.filter((step) => step === "error")).toHaveLength(3);
  });

  it("does not take the loss of another lease for its own", async () => {
    const { locks } = trial;
    const other = await locks.mutex("y").acquire();
    const [holder] = (await trial.others.inspect("y")).holders;
    if (!holder) throw new Error("it is held");
    await trial.others.revoke("y", { token: holder.token, reason: "test" });
    await trial.runtime.advance(0);
    const run = locks.mutex("x").run(() => other.assertHeld());
    await expect(run).rejects.toMatchObject({ code: "HF_LEASE_LOST", lockName: "y" });
    expect(ended.map(({ outcome }) => outcome)).toEqual(["failed"]);
  });

  it("tells that a lead lost its office, which was aborted before its next term", async () => {
    const stop = new AbortController();
    let finish = (): void => {};
    const term = new Promise<void>((resume) => {
      finish = resume;
    });
    const led = watch(trial.locks.election("e").lead(() => term, { signal: stop.signal }));
    await settled();
    await trial.loseTouch();
    await trial.others.election("e").campaign();
    finish();
    await settled();
    stop.abort(new Error("enough"));
    await settled();
    expect(led.error).toMatchObject({ message: "enough" });
    expect(ended.map(({ outcome }) => outcome)).toEqual(["lost"]);
  });

  it("tells of all, once and lead, and of runs that join another", async () => {
    const { locks } = trial;
    const mutex = locks.mutex("x", { reentrant: true });
    await mutex.run(() => mutex.run(() => {}));
    await locks.all(["a", "b"]).run(() => {});
    await locks.all(["a", "b"]).tryRun(() => {});
    await locks.once("o", () => {}, { keepMs: 1_000 });
    await locks.once("o", () => {}, { keepMs: 1_000 });
    await locks.election("e").lead(() => {});
    expect(ended.map(({ name, kind, outcome }) => [name, kind, outcome])).toEqual([
      ["x", "mutex", "done"],
      ["x", "mutex", "done"],
      ["a + b", "all", "done"],
      ["a + b", "all", "done"],
      ["o", "once", "done"],
      ["o", "once", "not_run"],
      ["e", "election", "done"],
    ]);
    expect(ended[0]?.token).toBe(ended[1]?.token);
  });

  it("lets a subscriber bind a store that the body finds", async () => {
    const spans = new AsyncLocalStorage<{ lock: string }>();
    runs.start.bindStore(spans, (event) => ({ lock: (event as RunEvent).name }));
    try {
      const found = await trial.locks.mutex("x").run(async () => {
        await settled();
        return spans.getStore();
      });
      expect(found).toEqual({ lock: "x" });
    } finally {
      runs.start.unbindStore(spans);
    }
  });

  it("does not tell the value of the body", async () => {
    await trial.locks.mutex("x").run((lease) => lease);
    expect(ended).toMatchObject([{ outcome: "done", result: undefined }]);
  });

  it("is not touched while there is no subscriber", async () => {
    runs.unsubscribe(tracers);
    const trace = vi.spyOn(events.run, "tracePromise");
    expect(await trial.locks.mutex("x").run(() => 7)).toBe(7);
    expect(trace).not.toHaveBeenCalled();
    trace.mockRestore();
  });
});
