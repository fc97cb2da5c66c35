import { describe, expect, it } from "vitest";
import { NO_LIMIT } from "../../rules/fits.js";
import type { Entry } from "./sequencer.js";
import { holderCount, mustTell, obstacleOf } from "./standing.js";

/** `x` exclusive, `s` a reader, `2/5` two of five permits. */
function queue(...requests: readonly string[]): Entry[] {
  return requests.map((request, index) => {
    const [weight = 1, limit = NO_LIMIT] = /^\d/.test(request)
      ? request.split("/").map(Number)
      : [];
    const mode = request === "x" ? "exclusive" : "shared";
    return { id: `${index}`, token: BigInt(index), session: "", text: null, mode, weight, limit };
  });
}

describe("holderCount", () => {
  it.each([
    [[], 0],
    [["x", "x"], 1],
    [["x", "s"], 1],
    [["s", "s", "x", "s"], 2],
    [["2/5", "3/5", "1/5"], 2],
    [["1/5", "1/2", "1/5"], 2],
    [["s", "1/2", "s"], 2],
  ])("of %j is %i", (requests, count) => {
    expect(holderCount(queue(...requests))).toBe(count);
  });
});

describe("obstacleOf", () => {
  it("is any entry that leaves, directly behind the holders", () => {
    expect(obstacleOf(queue("x", "x"), 1)).toEqual({ type: "leaving" });
    expect(obstacleOf(queue("2/5", "3/5", "4/5"), 2)).toEqual({ type: "leaving" });
  });

  it("is the entry before an exclusive one", () => {
    expect(obstacleOf(queue("x", "s", "x"), 2)).toEqual({
      type: "entry",
      id: "1",
      orWritten: false,
    });
  });

  it("is the last exclusive entry before a shared one", () => {
    const entries = queue("x", "x", "s", "s");
    expect(obstacleOf(entries, 3)).toEqual({ type: "entry", id: "1", orWritten: false });
  });

  it("is the entry before, until that is gone or holds, where weights block a shared one", () => {
    const entries = queue("4/5", "3/5", "1/5");
    expect(obstacleOf(entries, 2)).toEqual({ type: "entry", id: "1", orWritten: true });
  });
});

describe("mustTell", () => {
  it("only where an entry behind may wait for it", () => {
    expect(mustTell(queue("2/5", "1/5"), 0, false)).toBe(true);
    expect(mustTell(queue("s", "1/5"), 0, false)).toBe(true);
    expect(mustTell(queue("2/5", "1/5"), 1, false)).toBe(false);
    expect(mustTell(queue("s", "s", "x"), 0, false)).toBe(false);
    expect(mustTell(queue("x", "1/5"), 0, false)).toBe(false);
  });

  it("also where the entries with limits have left", () => {
    expect(mustTell(queue("s", "s"), 0, true)).toBe(true);
    expect(mustTell(queue("s", "s"), 1, true)).toBe(false);
  });
});
