import { describe, expect, it } from "vitest";
import { checkBoundedOvertaking } from "./bounded-overtaking.js";
import { Story } from "./story.js";

function turns(count: number, span: number, limit: number): Story {
  const story = new Story().at(0).grants("p/0", 10n, { span });
  for (let turn = 0; turn < count; turn += 1) {
    const token = 10n + BigInt(Math.min(turn, span - 1));
    story.at(turn).asks(`p/${turn}`).takes(`p/${turn}`, token, 99, { turns: limit });
  }
  return story;
}

describe("turns on one grant", () => {
  it.each([
    ["are as many as its span and its limit allow", 3, 3, 3, 0],
    ["are no more than its span", 4, 3, 32, 1],
    ["are no more than the limit that was asked for", 4, 8, 3, 1],
  ])("%s", (_, count, span, limit, violations) => {
    expect(checkBoundedOvertaking(turns(count, span, limit).entries)).toHaveLength(violations);
  });

  it("begin anew with the next grant", () => {
    const story = turns(3, 3, 3).at(10).asks("p/9").holds("p/9", 20n, 99, { turns: 3 });
    expect(checkBoundedOvertaking(story.entries)).toEqual([]);
  });
});
