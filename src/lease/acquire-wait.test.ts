import { beforeEach, describe, expect, it, vi } from "vitest";
import { ManualRuntime } from "../../test/fixtures/manual-runtime.js";
import type { Runtime } from "../time/runtime.js";
import type { Timer } from "../time/timers.js";
import { AcquireWait } from "./acquire-wait.js";

let runtime: ManualRuntime;

beforeEach(() => {
  runtime = new ManualRuntime();
});

describe("a wait", () => {
  it("sets no timer and hears no signal until a listener is set", () => {
    const controller = new AbortController();
    const listen = vi.spyOn(controller.signal, "addEventListener");
    new AcquireWait(runtime, 1_000, controller.signal);
    expect(runtime.alarms).toBe(0);
    expect(listen).not.toHaveBeenCalled();
  });

  it("without a listener is over all the same, for a store that looks", () => {
    const controller = new AbortController();
    const waits = [
      new AcquireWait(runtime, 1_000, undefined),
      new AcquireWait(runtime, 1_000, controller.signal),
      new AcquireWait(runtime, Number.POSITIVE_INFINITY, undefined),
    ];
    const ends = (): unknown[] => waits.map(({ ended, endedBy }) => ended && endedBy);
    expect(ends()).toEqual([false, false, false]);
    controller.abort();
    runtime.block(1_000);
    expect(ends()).toEqual(["time", "signal", false]);
  });

  it("is over by time, which counts from its start", async () => {
    const wait = new AcquireWait(runtime, 1_000, undefined);
    runtime.block(400);
    const ended = vi.fn();
    wait.onEnd(ended);
    expect(runtime.keepsAlive).toBe(true);
    await runtime.advance(599);
    expect(ended).not.toHaveBeenCalled();
    await runtime.advance(1);
    expect(ended).toHaveBeenCalledTimes(1);
    expect(wait.endedBy).toBe("time");
  });

  it("that ends with a report is informed, though the process stopped meanwhile", async () => {
    const wait = new AcquireWait(runtime, 2_000, undefined);
    wait.endsWithReport = true;
    wait.onEnd(() => {});
    expect(wait.hasRecentReport).toBe(false);
    wait.report(null);
    runtime.block(3_000);
    await runtime.advance(0);
    expect([wait.endedBy, wait.hasRecentReport]).toEqual(["time", true]);
  });

  it("believes the clock, not the timer", () => {
    const tasks: (() => void)[] = [];
    const after = (_: number, task: () => void): Timer => {
      tasks.push(task);
      return { cancel() {}, keepAlive() {} };
    };
    const { clock, random, timers } = runtime;
    const early: Runtime = { clock, random, timers: { ...timers, after } };
    const wait = new AcquireWait(early, 1_000, undefined);
    const ended = vi.fn();
    wait.onEnd(ended);
    runtime.block(999.5);
    tasks.shift()?.();
    expect(ended).not.toHaveBeenCalled();
    runtime.block(0.5);
    tasks.shift()?.();
    expect(ended).toHaveBeenCalledTimes(1);
  });

  it("is over by its signal, also by one that had aborted before", () => {
    const controller = new AbortController();
    const wait = new AcquireWait(runtime, 1_000, controller.signal);
    const ended = vi.fn();
    wait.onEnd(ended);
    controller.abort();
    expect(ended).toHaveBeenCalledTimes(1);
    expect(wait.endedBy).toBe("signal");
    expect(runtime.keepsAlive).toBe(false);
    const late = new AcquireWait(runtime, 1_000, controller.signal);
    late.onEnd(ended);
    expect(late.endedBy).toBe("signal");
    expect(ended).toHaveBeenCalledTimes(2);
  });

  it("ends once, and tells who asks later at once", () => {
    const wait = new AcquireWait(runtime, 1_000, undefined);
    wait.end("closed");
    wait.end("signal");
    expect(wait.endedBy).toBe("closed");
    const ended = vi.fn();
    wait.onEnd(ended);
    expect(ended).toHaveBeenCalledTimes(1);
  });

  it("tells the last who asked: it passes on from one attempt to the next", () => {
    const wait = new AcquireWait(runtime, Number.POSITIVE_INFINITY, undefined);
    const [first, second] = [vi.fn(), vi.fn()];
    wait.onEnd(first);
    wait.onEnd(second);
    wait.end("signal");
    expect(first).not.toHaveBeenCalled();
    expect(second).toHaveBeenCalledTimes(1);
  });

  it("that is settled keeps neither process nor signal, and tells nothing", async () => {
    const controller = new AbortController();
    const unlisten = vi.spyOn(controller.signal, "removeEventListener");
    const wait = new AcquireWait(runtime, 1_000, controller.signal);
    const ended = vi.fn();
    wait.onEnd(ended);
    expect(runtime.keepsAlive).toBe(true);
    wait.settle();
    expect(runtime.keepsAlive).toBe(false);
    expect(unlisten).toHaveBeenCalled();
    controller.abort();
    await runtime.advance(2_000);
    wait.end("closed");
    expect(ended).not.toHaveBeenCalled();
  });

  it("without an end sets no timer", () => {
    const wait = new AcquireWait(runtime, Number.POSITIVE_INFINITY, undefined);
    wait.onEnd(() => {});
    expect(wait.untilMs).toBe(Number.POSITIVE_INFINITY);
    expect(runtime.alarms).toBe(0);
  });
});
