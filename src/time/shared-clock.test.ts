import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { type Clock, machineClock } from "./clock.js";
import { clockMemory, sharedClock } from "./shared-clock.js";

/** A machine that can sleep: monotonic time stops, uptime and the wall clock go on. */
function machine() {
  let monotonicMs = 5_000;
  let uptimeMs = 90_000;
  let wallAheadMs = 0;
  const clock: Clock = {
    ...machineClock,
    nowMs: () => monotonicMs,
    exactMs: () => monotonicMs,
    wallUs: () => (uptimeMs + wallAheadMs) * 1000,
  };
  return {
    clock,
    uptimeMs: () => uptimeMs,
    run(durationMs: number) {
      monotonicMs += durationMs;
      uptimeMs += durationMs;
    },
    sleep(durationMs: number) {
      uptimeMs += durationMs;
    },
    setWall(aheadMs: number) {
      wallAheadMs = aheadMs;
    },
  };
}

describe("sharedClock", () => {
  it("counts a sleep in both threads as soon as one of them has noticed it", () => {
    const where = machine();
    const memory = clockMemory(where);
    const [mine, theirs] = [sharedClock(memory, where), sharedClock(memory, where)];
    expect(mine.exactMs()).toBe(theirs.exactMs());
    where.run(100);
    where.sleep(60_000);
    expect(theirs.nowMs()).toBe(5_100);
    const nowMs = mine.exactMs();
    expect(nowMs).toBeGreaterThanOrEqual(65_100);
    expect(theirs.nowMs()).toBe(nowMs);
    expect(theirs.exactMs()).toBe(nowMs);
    expect(theirs.sleptMs).toBe(mine.sleptMs);
  });

  it("counts a sleep between the beginnings of the two threads", () => {
    const where = machine();
    const memory = clockMemory(where);
    const mine = sharedClock(memory, where);
    where.sleep(60_000);
    const theirs = sharedClock(memory, where);
    expect(theirs.exactMs()).toBeGreaterThanOrEqual(65_000);
    expect(mine.nowMs()).toBe(theirs.nowMs());
  });

  it("counts a sleep in one thread after the other took a set wall clock for sleep", () => {
    const where = machine();
    const memory = clockMemory(where);
    const mine = sharedClock(memory, where);
    mine.exactMs();
    where.run(10);
    const theirs = sharedClock(memory, where);
    theirs.exactMs();
    where.run(990);
    where.setWall(3_600_000);
    const beforeMs = mine.exactMs();
    expect(theirs.nowMs()).toBe(beforeMs);
    where.sleep(6_290);
    expect(theirs.exactMs() - beforeMs).toBeGreaterThanOrEqual(6_290);
    expect(mine.nowMs()).toBe(theirs.nowMs());
  });

  it("never counts less than it did", () => {
    const where = machine();
    const memory = clockMemory(where);
    const mine = sharedClock(memory, where);
    where.sleep(1_000);
    const beforeMs = mine.exactMs();
    where.sleep(-1_000);
    expect(mine.exactMs()).toBeGreaterThanOrEqual(beforeMs);
  });
});

describe("machineClock", () => {
  it("is the same in another thread", async () => {
    const text = `const { parentPort } = require("node:worker_threads");
      const [seconds, nanoseconds] = process.hrtime();
      parentPort.postMessage(seconds * 1000 + nanoseconds / 1e6);`;
    const beforeMs = machineClock.nowMs();
    const worker = new Worker(text, { eval: true });
    const [thereMs] = await once(worker, "message");
    expect(thereMs).toBeGreaterThanOrEqual(beforeMs);
    expect(thereMs).toBeLessThanOrEqual(machineClock.nowMs());
    await worker.terminate();
  });
});
