import { describe, expect, it } from "vitest";
import { checkGhosts, checkLeftovers } from "./leftovers.js";
import { Story } from "./story.js";

describe("leftovers", () => {
  it("are whatever is left at the end", () => {
    const story = new Story().at(9).happens({ type: "left", what: "names", count: 2 });
    const messages = checkLeftovers(story.entries).map(({ message }) => message);
    expect(messages).toEqual(["at the end there are names: 2"]);
    expect(checkLeftovers(new Story().at(0).asks("p/0").entries)).toEqual([]);
  });
});

describe("a ghost", () => {
  it("holds or queues after its owner had ended", () => {
    const story = new Story().at(0).grants("p/0", 10n).at(1).withdraws("p/0");
    expect(checkGhosts(story.entries)).toEqual([]);
    expect(checkGhosts(story.at(2).grants("p/0", 11n).entries)).toHaveLength(1);
    const queued = new Story().at(0).withdraws("p/0", true).at(1).queues("p/0");
    expect(checkGhosts(queued.entries)).toHaveLength(1);
  });

  it("is no wonder in a store that forgot, or whose clock was set back", () => {
    for (const fault of [{ type: "forgot" }, { type: "stepped", byMs: -5_000 }] as const) {
      const story = new Story().at(0).withdraws("p/0", true).at(1).happens(fault);
      expect(checkGhosts(story.at(2).queues("p/0").entries)).toEqual([]);
    }
    const ahead = new Story()
      .at(0)
      .withdraws("p/0")
      .at(1)
      .happens({ type: "stepped", byMs: 5_000 });
    expect(checkGhosts(ahead.at(2).queues("p/0").entries)).toHaveLength(1);
  });
});
