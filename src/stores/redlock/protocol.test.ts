import { expect, it } from "vitest";
import { BALLOT_SPAN, nextBallot } from "./protocol.js";

it("a ballot follows the clock, and is above every ballot seen", () => {
  expect(nextBallot(128, 0)).toBe(128);
  expect(nextBallot(100, 0)).toBe(128);
  expect(nextBallot(100, 127)).toBe(128);
  expect(nextBallot(100, 500)).toBe(512);
});

it("a higher ballot is above all tokens of a lower one", () => {
  // The last one is near the end of the exact numbers.
  for (const ballot of [BALLOT_SPAN, 1_700_000_000_000_000, 9_007_199_254_700_032]) {
    for (let seen = ballot; seen < ballot + BALLOT_SPAN; seen += 1) {
      expect(nextBallot(0, seen)).toBe(ballot + BALLOT_SPAN);
    }
  }
});
