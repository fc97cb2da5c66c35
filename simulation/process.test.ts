import { describe, expect, it } from "vitest";
import { Chance } from "./chance.js";
import { History } from "./history.js";
import { SimulatedProcess } from "./process.js";
import { World } from "./world.js";

function setUp(rate = 1) {
  const world = new World();
  const history = new History();
  const process = new SimulatedProcess("p", rate, world, history, new Chance(1, "process"));
  const run = (untilMs: number): Promise<void> => world.run(untilMs, 10_000, () => false);
  return { world, history, process, run };
}

describe("a simulated process", () => {
  it("runs its promises dry before anything else happens", async () => {
    const { world, process, run } = setUp();
    const seen: string[] = [];
    world.schedule(1, process, async () => {
      for (let turn = 0; turn < 100; turn += 1) await null;
      process.runtime.timers.soon(() => seen.push("soon"));
      seen.push("promises");
    });
    world.schedule(1, null, () => seen.push("world"));
    await run(10);
    expect(seen).toEqual(["promises", "soon", "world"]);
  });

  it("that blocks finds its next statement that much later", async () => {
    const { world, process, run } = setUp();
    const seen: [string, number][] = [];
    const note = (what: string): number => seen.push([what, process.nowMs]);
    process.do(async () => {
      process.block(500);
      note("next statement");
      await null;
      note("next promise");
      process.runtime.timers.after(10, () => note("timer"));
    });
    world.schedule(100, process, () => note("message"));
    world.schedule(100, null, () => seen.push(["world", world.nowMs]));
    await run(1_000);
    expect(seen.slice(0, 4)).toEqual([
      ["next statement", 500],
      ["next promise", 500],
      ["world", 100],
      ["message", 500],
    ]);
    expect(seen[4]?.[1]).toBeGreaterThan(505);
  });

  it("that is paused goes on where it was, and its clock has run on", async () => {
    const { world, process, run } = setUp();
    const seen: number[] = [];
    world.schedule(10, null, () => process.pause(300));
    world.schedule(20, process, () => seen.push(process.nowMs));
    process.runtime.timers.after(30, () => seen.push(process.nowMs));
    await run(1_000);
    expect(seen).toEqual([310, 310]);
  });

  it("that sleeps with its machine has lost that time, until `exactMs` is read", async () => {
    const { world, process, run } = setUp();
    const { clock, timers } = process.runtime;
    const startMs = clock.exactMs();
    const seen: number[] = [];
    timers.after(100, () => seen.push(process.nowMs, clock.nowMs() - startMs));
    world.schedule(50, null, () => process.suspend(5_000));
    await run(10_000);
    expect(seen[0]).toBeGreaterThan(5_095);
    expect(seen[1]).toBeLessThan(105);
    expect(clock.exactMs() - startMs).toBeGreaterThan(5_095);
  });

  it("that crashed does nothing more", async () => {
    const { world, process, run } = setUp();
    let count = 0;
    world.schedule(10, process, () => {
      count += 1;
    });
    process.runtime.timers.after(20, () => {
      count += 1;
    });
    world.schedule(5, null, () => process.crash());
    await run(100);
    expect(count).toBe(0);
    expect(process.timers.all).toBe(0);
  });

  it("has a clock of its own", async () => {
    const { world, process, run } = setUp(1.01);
    const startMs = process.runtime.clock.nowMs();
    world.schedule(1_000, null, () => {});
    await run(1_000);
    expect(process.runtime.clock.nowMs() - startMs).toBeCloseTo(1_010, 6);
    expect(process.worldMs(startMs + 2_020)).toBeCloseTo(2_000, 6);
  });
});
