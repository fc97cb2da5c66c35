import { expect, it } from "vitest";
import { checkDoneOnce } from "./done-once.js";
import { Story } from "./story.js";

it("the work of a once is not done again before its mark ends", () => {
  const done = { type: "done", name: "a", lease: "p/0", untilMs: 1_000 } as const;
  const story = new Story().at(0).asks("p/0").holds("p/0", 10n, 500).at(100).happens(done);
  expect(checkDoneOnce(story.entries)).toEqual([]);
  story.at(200).asks("q/0").at(1_000).holds("q/0", 20n, 2_000);
  expect(checkDoneOnce(story.entries)).toEqual([]);
  const [violation] = checkDoneOnce(story.at(900).holds("q/1", 15n, 2_000).entries);
  expect(violation?.message).toBe('q/1 repeats the work of "a" that p/0 did');
});
