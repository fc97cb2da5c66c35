import { beforeEach, describe, expect, it } from "vitest";
import { ManualPort } from "../../test/fixtures/manual-port.js";
import { type Limited, Limits } from "./limits.js";

class Task implements Limited {
  heapIndex = -1;
  readonly dueMs: number;
  readonly #onDue: () => void;

  constructor(afterMs: number, onDue: () => void = () => {}) {
    this.dueMs = port.nowMs + afterMs;
    this.#onDue = onDue;
  }

  onDue(): void {
    over.push(this.dueMs);
    this.#onDue();
  }
}

let port: ManualPort;
let limits: Limits;
let over: number[];

beforeEach(() => {
  port = new ManualPort(0);
  limits = new Limits(port);
  over = [];
});

describe("limits", () => {
  it("become due in the order of their times, whatever the order they came in", async () => {
    for (const afterMs of [300, 100, 200]) limits.add(new Task(afterMs));
    await port.advance(99);
    expect(over).toEqual([]);
    await port.advance(101);
    expect(over).toEqual([100, 200]);
    await port.advance(100);
    expect(over).toEqual([100, 200, 300]);
    expect(port.alarms).toBe(0);
  });

  it("share one timer, which a limit that is taken away leaves alone", async () => {
    const tasks = Array.from({ length: 50 }, (_, at) => new Task(100 + at));
    for (const task of tasks) limits.add(task);
    expect(port.alarms).toBe(1);
    for (const task of tasks.slice(0, 49)) limits.remove(task);
    expect(port.alarms).toBe(1);
    await port.advance(200);
    expect(over).toEqual([149]);
  });

  it("keep the process alive unless they say otherwise", async () => {
    const quiet = Object.assign(new Task(100), { keepsAlive: false });
    const task = new Task(200);
    limits.add(quiet);
    expect(port.keepsAlive).toBe(false);
    limits.add(task);
    expect(port.keepsAlive).toBe(true);
    await port.advance(150);
    expect(over).toEqual([100]);
    expect(port.keepsAlive).toBe(true);
    limits.add(Object.assign(new Task(10), { keepsAlive: false }));
    limits.remove(task);
    expect(port.keepsAlive).toBe(false);
  });

  it("keep the process alive while there are any", () => {
    const task = new Task(100);
    expect(port.keepsAlive).toBe(false);
    limits.add(task);
    expect(port.keepsAlive).toBe(true);
    limits.remove(task);
    limits.remove(task);
    expect(port.keepsAlive).toBe(false);
    limits.add(new Task(200));
    expect(port.keepsAlive).toBe(true);
  });

  it("that come after a sleep of the machine do not share the lateness of the timer", async () => {
    limits.add(new Task(10_000));
    port.sleep(60_000);
    port.clock.exactMs();
    limits.add(new Task(50));
    await port.advance(50);
    expect(over).toEqual([10_000, 60_050]);
  });

  it("that were there before a sleep are in time again once another comes", async () => {
    limits.add(new Task(10_000));
    port.sleep(5_000);
    limits.add(new Task(9_000));
    port.clock.exactMs();
    limits.add(new Task(20_000));
    await port.advance(5_000);
    expect(over).toEqual([9_000, 10_000]);
  });

  it("can be set again from within", async () => {
    limits.add(new Task(100, () => limits.add(new Task(50))));
    limits.add(new Task(400));
    await port.advance(149);
    expect(over).toEqual([100]);
    await port.advance(1);
    expect(over).toEqual([100, 150]);
    await port.advance(250);
    expect(over).toEqual([100, 150, 400]);
  });

  it("are no more after a stop, which is told to all that there are and that come", async () => {
    const stopped: number[] = [];
    for (const afterMs of [100, 50]) {
      const task = new Task(afterMs);
      limits.add(Object.assign(task, { onStop: () => stopped.push(afterMs) }));
      limits.stop();
    }
    await port.advance(1_000);
    expect(stopped).toEqual([100, 50]);
    expect(over).toEqual([]);
    expect(port.alarms).toBe(0);
  });
});
