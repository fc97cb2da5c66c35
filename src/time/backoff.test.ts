import { describe, expect, it } from "vitest";
import { Backoff } from "./backoff.js";
import { systemRandom } from "./random.js";

const pausesOf = (fraction: number, count: number): number[] => {
  const random = { ...systemRandom, fraction: () => fraction };
  const backoff = new Backoff(random, { firstMs: 20, longestMs: 100 });
  return Array.from({ length: count }, () => backoff.nextMs());
};

describe("the pauses between tries", () => {
  it("double up to the longest", () => {
    expect(pausesOf(1, 5)).toEqual([20, 40, 80, 100, 100]);
  });

  it("are shortened by up to a half", () => {
    expect(pausesOf(0, 5)).toEqual([10, 20, 40, 50, 50]);
  });

  it("stay finite after any number of failures", () => {
    expect(pausesOf(1, 2_000).at(-1)).toBe(100);
  });

  it("begin again after a success", () => {
    const random = { ...systemRandom, fraction: () => 1 };
    const backoff = new Backoff(random, { firstMs: 20, longestMs: 100 });
    backoff.nextMs();
    backoff.nextMs();
    backoff.reset();
    expect(backoff.nextMs()).toBe(20);
  });
});
