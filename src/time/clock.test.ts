import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { check } from "../../test/fixtures/property.js";
import { type Clock, monotonicClock, suspendAware } from "./clock.js";

/** A machine that can sleep: monotonic time stops, uptime goes on in steps. */
function machine(startMs = 5_000, uptimeMs = 86_400_003, stepMs = 10) {
  let monotonicMs = startMs;
  let bootMs = uptimeMs;
  let wallAheadMs = 0;
  let reads = 0;
  const monotonic: Clock = {
    nowMs: () => monotonicMs,
    exactMs: () => monotonicMs,
    sleptMs: 0,
    wallUs: () => Math.floor(bootMs + wallAheadMs) * 1000,
  };
  return {
    clock: suspendAware(monotonic, () => {
      reads += 1;
      return Math.floor(bootMs / stepMs) * stepMs;
    }),
    trueMs: () => bootMs - uptimeMs + startMs,
    run(durationMs: number) {
      monotonicMs += durationMs;
      bootMs += durationMs;
    },
    sleep(durationMs: number) {
      bootMs += durationMs;
    },
    setWall(aheadMs: number) {
      wallAheadMs = aheadMs;
    },
    uptimeReads: () => reads,
  };
}

describe("suspendAware", () => {
  it("is the monotonic clock while the machine is awake", () => {
    const { clock, run } = machine();
    for (let step = 0; step < 1_000; step += 1) {
      run(7.3);
      expect(clock.exactMs()).toBe(clock.nowMs());
    }
    expect(clock.nowMs()).toBeCloseTo(5_000 + 7_300, 6);
  });

  it("counts a suspend from the first exact look on", () => {
    const { clock, run, sleep } = machine();
    run(100);
    sleep(60_000);
    expect(clock.nowMs()).toBe(5_100);
    expect(clock.exactMs()).toBeGreaterThanOrEqual(65_100);
    expect(clock.exactMs()).toBeLessThanOrEqual(65_120);
    expect(clock.nowMs()).toBe(clock.exactMs());
  });

  it("does not ask the system again while nothing points to a suspend", () => {
    const { clock, run, uptimeReads } = machine();
    run(50);
    clock.exactMs();
    const before = uptimeReads();
    for (let step = 0; step < 100; step += 1) {
      run(7.3);
      clock.exactMs();
    }
    expect(uptimeReads()).toBe(before);
  });

  it("adds up several suspends", () => {
    const { clock, run, sleep, trueMs } = machine();
    for (let night = 0; night < 50; night += 1) {
      run(1_000);
      sleep(8_000);
      clock.exactMs();
    }
    expect(clock.exactMs() - trueMs()).toBeGreaterThanOrEqual(0);
    expect(clock.exactMs() - trueMs()).toBeLessThanOrEqual(30);
  });

  it.each([
    ["10 ms", 10],
    ["whole seconds", 1_000],
  ])("with an uptime in %s never runs backwards, and is right to 30 ms", (_, stepMs) => {
    const step = fc.record({
      awakeMs: fc.nat(500),
      asleepMs: fc.constantFrom(0, 0, 4, 15, 40, 9_000),
    });
    check(
      fc.property(fc.array(step, { maxLength: 40 }), fc.nat(999), (steps, phaseMs) => {
        const { clock, run, sleep, trueMs } = machine(5_000, 86_400_000 + phaseMs, stepMs);
        let last = clock.exactMs();
        for (const { awakeMs, asleepMs } of steps) {
          run(awakeMs);
          sleep(asleepMs);
          expect(clock.nowMs()).toBeGreaterThanOrEqual(last);
          last = clock.exactMs();
          expect(Math.abs(last - trueMs())).toBeLessThanOrEqual(30);
          expect(clock.nowMs()).toBe(last);
        }
      }),
    );
  });

  it("hides no sleep after a wall clock set ahead was taken for sleep", () => {
    // The resolution is 10 ms, but the uptime is whole seconds at the start and at the first look.
    const { clock, run, sleep, setWall } = machine(5_000, 86_400_000);
    run(1_000);
    setWall(3_600_000);
    clock.exactMs();
    run(50);
    const beforeMs = clock.exactMs();
    sleep(6_290);
    expect(clock.exactMs() - beforeMs).toBeGreaterThanOrEqual(6_290);
  });

  it.each([
    ["10 ms", 10],
    ["whole seconds", 1_000],
  ])(
    "with an uptime in %s counts every sleep, however far the wall clock is set ahead",
    (_, stepMs) => {
      const step = fc.record({
        awakeMs: fc.constantFrom(10, 50, 990, 1_000, 3_000),
        asleepMs: fc.constantFrom(0, 6_290, 9_000),
        aheadMs: fc.constantFrom(0, 1_000, 3_600_000),
      });
      check(
        fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
          const { clock, run, sleep, setWall, trueMs } = machine(5_000, 86_400_000, stepMs);
          let wallMs = 0;
          let mostLeadMs = 0;
          for (const { awakeMs, asleepMs, aheadMs } of steps) {
            run(awakeMs);
            sleep(asleepMs);
            wallMs += aheadMs;
            setWall(wallMs);
            const leadMs = clock.exactMs() - trueMs();
            expect(leadMs).toBeGreaterThanOrEqual(mostLeadMs - 30);
            mostLeadMs = Math.max(mostLeadMs, leadMs);
          }
        }),
      );
    },
  );

  it("does not take a wall clock set ahead for sleep after an uptime with a fraction", () => {
    const { clock, run, setWall, trueMs } = machine(5_000, 86_400_000);
    for (const [at, durationMs] of [10, 990].entries()) {
      run(durationMs);
      setWall((at + 1) * 3_600_000);
      expect(clock.exactMs()).toBe(trueMs());
    }
  });

  it("finds out before the wall clock is set whether the uptime has fractions", () => {
    const { clock, run, setWall, trueMs } = machine(5_000, 86_400_000);
    run(500);
    clock.exactMs();
    // Both the first reading and the one at the jump are whole seconds.
    run(500);
    setWall(3_600_000);
    expect(clock.exactMs()).toBe(trueMs());
  });

  it("passes the wall clock through", () => {
    expect(machine().clock.wallUs()).toBe(86_400_003_000);
  });
});

describe("monotonicClock", () => {
  it("does not step back, and tells the date in whole microseconds", () => {
    const first = monotonicClock.nowMs();
    expect(monotonicClock.exactMs()).toBeGreaterThanOrEqual(first);
    expect(Number.isSafeInteger(monotonicClock.wallUs())).toBe(true);
    expect(Math.abs(monotonicClock.wallUs() / 1000 - Date.now())).toBeLessThan(1_000);
  });
});
