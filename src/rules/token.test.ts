import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { check } from "../../test/fixtures/property.js";
import { nextToken } from "./token.js";

const TODAY_US = 1_763_000_000_000_000;

describe("nextToken", () => {
  it("rises whatever the clock does", () => {
    const jumps = fc.array(fc.integer({ min: -1e12, max: 1e12 }), { maxLength: 50 });
    check(
      fc.property(jumps, (jumpsUs) => {
        let last = 0;
        let wallUs = TODAY_US;
        for (const jumpUs of jumpsUs) {
          wallUs = Math.max(0, wallUs + jumpUs);
          const token = nextToken(last, wallUs);
          expect(token).toBeGreaterThan(last);
          expect(Number.isSafeInteger(token)).toBe(true);
          last = token;
        }
      }),
    );
  });

  it("follows the clock, so that it rises when the last one was forgotten", () => {
    const before = nextToken(0, TODAY_US);
    expect(before).toBe(TODAY_US);
    expect(nextToken(0, TODAY_US + 1)).toBeGreaterThan(before);
  });

  it("goes one by one within a microsecond", () => {
    expect(nextToken(TODAY_US, TODAY_US)).toBe(TODAY_US + 1);
  });
});
