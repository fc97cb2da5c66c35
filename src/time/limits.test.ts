import { beforeEach, describe, expect, it } from "vitest";
import { ManualRuntime } from "../../test/fixtures/manual-runtime.js";
import { type Limited, Limits } from "./limits.js";

class Task implements Limited {
  heapIndex = -1;
  readonly dueMs: number;
  readonly #onDue: () => void;

  constructor(afterMs: number, onDue: () => void = () => {}) {
    this.dueMs = runtime.nowMs + afterMs;
    this.#onDue = onDue;
  }

  onDue(): void {
    over.push(this.dueMs);
    this.#onDue();
  }
}

let runtime: ManualRuntime;
let limits: Limits;
let over: number[];

beforeEach(() => {
  runtime = new ManualRuntime(0);
  limits = new Limits(runtime);
  over = [];
});

describe("limits", () => {
  it("become due in the order of their times, whatever the order they came in", async () => {
    for (const afterMs of [300, 100, 200]) limits.add(new Task(afterMs));
    await runtime.advance(99);
    expect(over).toEqual([]);
    await runtime.advance(101);
    expect(over).toEqual([100, 200]);
    await runtime.advance(100);
    expect(over).toEqual([100, 200, 300]);
    expect(runtime.alarms).toBe(0);
  });

  it("share one timer, which a limit that is taken away leaves alone", async () => {
    const tasks = Array.from({ length: 50 }, (_, at) => new Task(100 + at));
    for (const task of tasks) limits.add(task);
    expect(runtime.alarms).toBe(1);
    for (const task of tasks.slice(0, 49)) limits.remove(task);
    expect(runtime.alarms).toBe(1);
    await runtime.advance(200);
    expect(over).toEqual([149]);
  });

  it("keep the process alive unless they say otherwise", async () => {
    const quiet = Object.assign(new Task(100), { keepsAlive: false });
    const task = new Task(200);
    limits.add(quiet);
    expect(runtime.keepsAlive).toBe(false);
    limits.add(task);
    expect(runtime.keepsAlive).toBe(true);
    await runtime.advance(150);
    expect(over).toEqual([100]);
    expect(runtime.keepsAlive).toBe(true);
    limits.add(Object.assign(new Task(10), { keepsAlive: false }));
    limits.remove(task);
    expect(runtime.keepsAlive).toBe(false);
  });

  it("keep the process alive while there are any", () => {
    const task = new Task(100);
    expect(runtime.keepsAlive).toBe(false);
    limits.add(task);
    expect(runtime.keepsAlive).toBe(true);
    limits.remove(task);
    limits.remove(task);
    expect(runtime.keepsAlive).toBe(false);
    limits.add(new Task(200));
    expect(runtime.keepsAlive).toBe(true);
  });

  it("that come after a sleep of the machine do not share the lateness of the timer", async () => {
    limits.add(new Task(10_000));
    runtime.sleep(60_000);
    runtime.clock.exactMs();
    limits.add(new Task(50));
    await runtime.advance(50);
    expect(over).toEqual([10_000, 60_050]);
  });

  it("that were there before a sleep are in time again once another comes", async () => {
    limits.add(new Task(10_000));
    runtime.sleep(5_000);
    limits.add(new Task(9_000));
    runtime.clock.exactMs();
    limits.add(new Task(20_000));
    await runtime.advance(5_000);
    expect(over).toEqual([9_000, 10_000]);
  });

  it("can be set again from within", async () => {
    limits.add(new Task(100, () => limits.add(new Task(50))));
    limits.add(new Task(400));
    await runtime.advance(149);
    expect(over).toEqual([100]);
    await runtime.advance(1);
    expect(over).toEqual([100, 150]);
    await runtime.advance(250);
    expect(over).toEqual([100, 150, 400]);
  });

  it("are no more after a stop, which is told to all that there are and that come", async () => {
    const stopped: number[] = [];
    for (const afterMs of [100, 50]) {
      const task = new Task(afterMs);
      limits.add(Object.assign(task, { onStop: () => stopped.push(afterMs) }));
      limits.stop();
    }
    await runtime.advance(1_000);
    expect(stopped).toEqual([100, 50]);
    expect(over).toEqual([]);
    expect(runtime.alarms).toBe(0);
  });
});
