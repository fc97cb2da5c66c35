import { describe, expect, it } from "vitest";
import {
  majorityOf,
  majorityReadyAt,
  preventsMajority,
  reachedByMajority,
  Tally,
} from "./majority.js";

const YES = { type: "yes" } as const;
const NO = { type: "no" } as const;
const FAILED = { type: "failed" } as const;
type Answer = typeof YES | typeof NO | typeof FAILED | undefined;
const tally = (...answers: Answer[]) => new Tally(answers);

describe("a majority", () => {
  it.each([
    [1, 1],
    [2, 2],
    [3, 2],
    [4, 3],
    [5, 3],
    [6, 4],
    [7, 4],
  ])("of %i nodes is %i", (nodes, majority) => {
    expect(majorityOf(nodes)).toBe(majority);
    expect(2 * majority, "two majorities share a node").toBeGreaterThan(nodes);
    expect(2 * (majority - 1), "fewer do not suffice").toBeLessThanOrEqual(nodes);
  });

  it("is certain as soon as enough nodes agree, whatever the open ones say", () => {
    expect(tally(YES, YES, undefined).isMajority("yes")).toBe(true);
    expect(tally(YES, NO, undefined).isMajority("yes")).toBe(false);
    expect(tally(YES, YES, undefined, undefined).isMajority("yes")).toBe(false);
    expect(tally(YES, NO, FAILED).isMajority("yes", "no")).toBe(true);
  });

  it("is still open while the open nodes could complete it", () => {
    expect(tally(YES, NO, undefined).mayBeMajority("yes")).toBe(true);
    expect(tally(NO, NO, undefined).mayBeMajority("yes")).toBe(false);
    expect(tally(YES, YES, NO).mayBeMajority("yes")).toBe(true);
    expect(tally(YES, NO, FAILED).mayBeMajority("yes")).toBe(false);
  });
});

describe("a refusal", () => {
  it.each([
    [2, 1],
    [3, 2],
    [4, 2],
    [5, 3],
  ])("of %i nodes is certain with %i of them: the others are no majority", (nodes, refusals) => {
    expect(preventsMajority(refusals, nodes)).toBe(true);
    expect(nodes - refusals).toBeLessThan(majorityOf(nodes));
    expect(preventsMajority(refusals - 1, nodes)).toBe(false);
  });

  it("counts neither open nodes nor nodes that failed", () => {
    expect(tally(NO, undefined, undefined).preventsMajority("no")).toBe(false);
    expect(tally(NO, FAILED, FAILED).preventsMajority("no")).toBe(false);
    expect(tally(NO, NO, undefined).preventsMajority("no")).toBe(true);
  });
});

it("a tally is open until every node has answered or failed", () => {
  expect(tally(YES, undefined).isOpen).toBe(true);
  expect(tally(YES, FAILED).isOpen).toBe(false);
});

it("a majority reaches the lowest value of its best nodes", () => {
  expect(reachedByMajority([10, 30, 20], 3)).toBe(20);
  expect(reachedByMajority([30, 20], 3), "a node said nothing").toBe(20);
  expect(reachedByMajority([30], 3), "too few said anything").toBe(Number.NEGATIVE_INFINITY);
});

it("a majority is ready with the slowest of its fastest nodes", () => {
  expect(majorityReadyAt([30, 0, 10])).toBe(10);
  expect(majorityReadyAt([0, Number.POSITIVE_INFINITY, 5, 7])).toBe(7);
});
