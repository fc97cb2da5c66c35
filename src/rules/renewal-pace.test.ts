import { describe, expect, it } from "vitest";
import { renewAfterMs, repeatAfterMs, retryAfterMs } from "./renewal-pace.js";

/** When renewals are sent, as parts of the time that is left at first, if none is answered. */
function triesWith(remainingMs: number, ttlMs: number): number[] {
  const tries: number[] = [];
  for (let passedMs = 0; passedMs < remainingMs; ) {
    tries.push(passedMs / remainingMs);
    passedMs += repeatAfterMs(remainingMs - passedMs, ttlMs);
  }
  return tries;
}

describe("an unanswered renewal", () => {
  it.each([50, 1_000, 2_000, 30_000, 3_600_000])(
    "with a ttl of %i ms is repeated within a quarter, at least three times, and not in a flood",
    (ttlMs) => {
      const tries = triesWith(ttlMs - renewAfterMs(ttlMs), ttlMs);
      expect(tries[1]).toBeLessThanOrEqual(0.25);
      expect(tries.length).toBeGreaterThanOrEqual(4);
      expect(tries.length).toBeLessThanOrEqual(40);
    },
  );

  it("has more tries also where most of the time was taken by grace, or has passed", () => {
    expect(triesWith(30_000 / 6, 30_000).length).toBeGreaterThanOrEqual(4);
    expect(triesWith(2_000 / 6, 2_000).length).toBeGreaterThanOrEqual(4);
    expect(triesWith(1_300, 60_000).length).toBeGreaterThanOrEqual(3);
  });
});

it("a failed renewal is repeated before an unanswered one", () => {
  for (const ttlMs of [50, 2_000, 30_000]) {
    expect(retryAfterMs(ttlMs)).toBeLessThanOrEqual(repeatAfterMs(0, ttlMs));
    expect(retryAfterMs(ttlMs)).toBeLessThan(repeatAfterMs(ttlMs / 2, ttlMs));
  }
});
