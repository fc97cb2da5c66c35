import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { check } from "../../../test/fixtures/property.js";
import type { PushedGrant } from "../../rules/ledger-command.js";
import { marginMs } from "../../rules/margin.js";
import { ClockBounds } from "./clock-bounds.js";

const AHEAD_MS = 9_000_000;
const NODE = "run-1";

/** A grant made when our clock said `grantedMs`, by a store whose clock is ahead of ours. */
function grantAt(grantedMs: number, lengthMs: number, aheadMs = AHEAD_MS): PushedGrant {
  const grantedUs = (grantedMs + aheadMs) * 1000;
  return { owner: "o", token: 1, span: 1, grantedUs, expiryUs: grantedUs + lengthMs * 1000 };
}

/** Learns from a call of which the store saw the middle. */
function learn(
  time: ClockBounds,
  sentMs: number,
  tripMs = 2,
  aheadMs = AHEAD_MS,
  node = NODE,
): void {
  time.learn(node, sentMs, (sentMs + tripMs / 2 + aheadMs) * 1000, sentMs + tripMs);
}

describe("a pushed grant", () => {
  it("is believed when it is fresh: until lo + e − 2m", () => {
    const time = new ClockBounds();
    learn(time, 1_000, 2);
    const lo = -AHEAD_MS - 1 - 0.001 * (1_011 - 1_000);
    const expiryMs = 1_010 + AHEAD_MS + 5_000;
    const deadlineMs = time.believe(grantAt(1_010, 5_000), 1_011);
    expect(deadlineMs).toBeCloseTo(lo + expiryMs - 2 * marginMs(5_000), 3);
  });

  it("is not believed while nothing is known of the store's clock", () => {
    expect(new ClockBounds().believe(grantAt(1_000, 5_000), 1_001)).toBeNull();
  });

  it("is not believed when it was under way for longer than the margin", () => {
    const time = new ClockBounds();
    learn(time, 1_000, 0);
    const grant = grantAt(1_000, 5_000);
    expect(time.believe(grant, 1_000 + marginMs(5_000) - 1)).not.toBeNull();
    expect(time.believe(grant, 1_000 + marginMs(5_000) + 1)).toBeNull();
    expect(time.believe(grant, 4_000)).toBeNull();
  });

  it("is not believed when it seems to come from the future", () => {
    const time = new ClockBounds();
    learn(time, 1_000, 0);
    expect(time.believe(grantAt(1_020, 5_000), 1_010)).toBeNull();
  });

  it("is believed ever less as the last sample ages: clocks drift", () => {
    const time = new ClockBounds();
    learn(time, 0, 0);
    const hourMs = 3_600_000;
    expect(time.believe(grantAt(hourMs, 5_000), hourMs)).toBeNull();
    expect(time.believe(grantAt(10_000, 5_000), 10_000)).not.toBeNull();
  });
});

describe("the latest time of a command", () => {
  it("is a whole millisecond, never after the time that was meant", () => {
    const time = new ClockBounds();
    learn(time, 1_000, 0);
    for (const localMs of [1_000, 1_000.4, 1_007.25, 5_000.999]) {
      const notAfterUs = time.notAfterUs(localMs);
      expect(notAfterUs % 1000).toBe(0);
      expect(time.storeUs(localMs) - notAfterUs).toBeGreaterThanOrEqual(0);
      expect(time.storeUs(localMs) - notAfterUs).toBeLessThan(1000);
    }
    expect(time.notAfterUs(1_000.7)).toBe(time.notAfterUs(1_000.2));
  });
});

describe("a clock that steps", () => {
  it("forward: all that was known is forgotten with the first answer", () => {
    const time = new ClockBounds();
    learn(time, 1_000);
    learn(time, 2_000, 2, AHEAD_MS + 60_000);
    const deadlineMs = time.believe(grantAt(2_010, 5_000, AHEAD_MS + 60_000), 2_011);
    expect(deadlineMs).toBeLessThan(2_010 + 5_000);
    expect(deadlineMs).toBeGreaterThan(2_010 + 4_500);
  });

  it("back: likewise", () => {
    const time = new ClockBounds();
    learn(time, 1_000);
    learn(time, 2_000, 2, AHEAD_MS - 60_000);
    const deadlineMs = time.believe(grantAt(2_010, 5_000, AHEAD_MS - 60_000), 2_011);
    expect(deadlineMs).toBeLessThan(2_010 + 5_000);
    expect(deadlineMs).toBeGreaterThan(2_010 + 4_500);
  });

  it("before any answer tells of it: nothing pushed is believed", () => {
    const time = new ClockBounds();
    learn(time, 1_000);
    expect(time.believe(grantAt(2_010, 5_000, AHEAD_MS + 60_000), 2_011)).toBeNull();
    expect(time.believe(grantAt(2_010, 5_000, AHEAD_MS - 60_000), 2_011)).toBeNull();
  });

  it("is another clock where another node answers, however close", () => {
    const time = new ClockBounds();
    learn(time, 1_000, 2);
    learn(time, 2_000, 40, AHEAD_MS - 15, "run-2");
    // By the old samples this push would seem 15 ms late; by the new ones, up to 40.
    const deadlineMs = time.believe(grantAt(2_050, 5_000, AHEAD_MS - 15), 2_050);
    expect(deadlineMs).toBeLessThanOrEqual(2_050 + 5_000 - 2 * marginMs(5_000));
    const notAfterUs = time.storeUs(3_000);
    expect(notAfterUs).toBeLessThanOrEqual((3_000 + AHEAD_MS - 15) * 1000);
  });
});

describe("whatever was sampled", () => {
  const sample = fc.record({
    pauseMs: fc.integer({ min: 0, max: 60_000 }),
    outMs: fc.integer({ min: 0, max: 300 }),
    backMs: fc.integer({ min: 0, max: 300 }),
  });

  it("no belief outlasts the grant, and no command is valid for longer than meant", () => {
    check(
      fc.property(
        fc.array(sample, { minLength: 1, maxLength: 20 }),
        fc.integer({ min: -1_000, max: 1_000 }),
        fc.integer({ min: 0, max: 200 }),
        (samples, driftPpm, delayMs) => {
          const rate = 1 + driftPpm / 1_000_000;
          const storeMs = (localMs: number): number => AHEAD_MS + localMs * rate;
          const time = new ClockBounds();
          let nowMs = 1_000;
          for (const { pauseMs, outMs, backMs } of samples) {
            nowMs += pauseMs;
            const sentMs = nowMs;
            nowMs += outMs + backMs;
            time.learn(NODE, sentMs, Math.floor(storeMs(sentMs + outMs) * 1000), nowMs);
          }
          const grantedUs = storeMs(nowMs) * 1000;
          const grant = { owner: "o", token: 1, span: 1, grantedUs, expiryUs: grantedUs + 5e6 };
          const deadlineMs = time.believe(grant, nowMs + delayMs);
          if (deadlineMs !== null) expect(storeMs(deadlineMs) * 1000).toBeLessThan(grant.expiryUs);
          expect(time.storeUs(nowMs)).toBeLessThanOrEqual(storeMs(nowMs) * 1000);
        },
      ),
      500,
    );
  });
});
