import { expect, it } from "vitest";
import { deadlineOf, marginMs } from "./margin.js";

it("is 1 % of the length and 2 ms", () => {
  expect(marginMs(0)).toBe(2);
  expect(marginMs(100)).toBe(3);
  expect(marginMs(30_000)).toBe(302);
});

it("covers two clocks that run 1 % apart", () => {
  for (const lengthMs of [10, 1_000, 30_000, 86_400_000]) {
    const believedMs = lengthMs - marginMs(lengthMs);
    expect(believedMs * 1.01).toBeLessThan(lengthMs);
  }
});

it("leaves what is left of a grant, and never more than was asked for", () => {
  expect(deadlineOf(1_000, 10_000, 30_000)).toBe(1_000 + 10_000 - marginMs(30_000));
  expect(deadlineOf(1_000, 150_000, 30_000)).toBe(1_000 + 30_000 - marginMs(30_000));
});
