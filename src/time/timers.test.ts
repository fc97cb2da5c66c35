import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ManualRuntime } from "../../test/fixtures/manual-runtime.js";
import { systemTimers, TimeLimitError, within } from "./timers.js";

const MAX_MS = 2 ** 31 - 1;

describe("systemTimers.after", () => {
  const delays: number[] = [];

  beforeEach(() => {
    vi.useFakeTimers();
    delays.length = 0;
    const faked = setTimeout;
    vi.spyOn(globalThis, "setTimeout").mockImplementation(((task: () => void, delayMs: number) => {
      delays.push(delayMs);
      return faked(task, delayMs);
    }) as typeof setTimeout);
  });

  afterEach(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
  });

  it("chains what setTimeout cannot wait for", () => {
    const task = vi.fn();
    systemTimers.after(2 * MAX_MS + 500, task);
    vi.advanceTimersByTime(MAX_MS);
    vi.advanceTimersByTime(MAX_MS);
    expect(task).not.toHaveBeenCalled();
    vi.advanceTimersByTime(499);
    expect(task).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(task).toHaveBeenCalledTimes(1);
    expect(delays).toEqual([MAX_MS, MAX_MS, 500]);
  });

  it("can be cancelled in any link of the chain", () => {
    const task = vi.fn();
    const timer = systemTimers.after(MAX_MS + 500, task);
    vi.advanceTimersByTime(MAX_MS + 1);
    timer.cancel();
    vi.advanceTimersByTime(MAX_MS);
    expect(task).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });

  it("never ends where the delay has no end", () => {
    const task = vi.fn();
    systemTimers.after(Number.POSITIVE_INFINITY, task);
    vi.advanceTimersByTime(MAX_MS);
    vi.advanceTimersByTime(MAX_MS);
    expect(task).not.toHaveBeenCalled();
    expect(Math.max(...delays)).toBe(MAX_MS);
  });

  it("takes the past for now", () => {
    const task = vi.fn();
    systemTimers.after(-5, task);
    vi.advanceTimersByTime(0);
    expect(task).toHaveBeenCalledTimes(1);
  });
});

describe("a timer", () => {
  it("keeps the process alive only when asked to", () => {
    const timeouts: NodeJS.Timeout[] = [];
    const real = setTimeout;
    const spy = vi.spyOn(globalThis, "setTimeout").mockImplementation(((task: () => void) => {
      const timeout = real(task, 60_000);
      timeouts.push(timeout);
      return timeout;
    }) as typeof setTimeout);
    const timers = [
      systemTimers.after(1, () => {}),
      systemTimers.after(1, () => {}, true),
      systemTimers.after(MAX_MS + 1, () => {}),
      systemTimers.after(MAX_MS + 1, () => {}, true),
    ];
    spy.mockRestore();
    expect(timeouts.map((timeout) => timeout.hasRef())).toEqual([false, true, false, true]);
    for (const timer of timers) timer.cancel();
  });

  it("`soon` comes after the promises of this turn, and before timers", async () => {
    const order: string[] = [];
    setTimeout(() => order.push("timer"), 0);
    systemTimers.soon(() => order.push("soon"));
    await Promise.resolve().then(() => order.push("promise"));
    systemTimers.soon(() => order.push("later"));
    await new Promise((resume) => setTimeout(resume, 5));
    expect(order).toEqual(["promise", "soon", "later", "timer"]);
  });
});

describe("within", () => {
  it("passes the outcome on and leaves no timer", async () => {
    const runtime = new ManualRuntime();
    await expect(within(runtime.timers, 100, Promise.resolve(7))).resolves.toBe(7);
    await expect(within(runtime.timers, 100, Promise.reject(new Error("no")))).rejects.toThrow(
      "no",
    );
    expect(runtime.alarms).toBe(0);
  });

  it("throws when it takes too long, and whatever comes later is dropped", async () => {
    const runtime = new ManualRuntime();
    let fail: (error: Error) => void = () => {};
    const work = new Promise<never>((_, reject) => {
      fail = reject;
    });
    const outcome = within(runtime.timers, 100, work);
    outcome.catch(() => {});
    await runtime.advance(99);
    expect(runtime.keepsAlive).toBe(true);
    await runtime.advance(1);
    await expect(outcome).rejects.toBeInstanceOf(TimeLimitError);
    fail(new Error("late"));
    await runtime.advance(1);
  });
});
