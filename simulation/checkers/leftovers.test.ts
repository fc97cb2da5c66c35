import { describe, expect, it } from "vitest";
import type { Happening } from "../history.js";
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
    const queued = new Story().at(0).withdraws("p/0", 500).at(1).queues("p/0");
    expect(checkGhosts(queued.entries)).toHaveLength(1);
  });

  it("is excused by a store that forgot its tombstone, or was set back after the end of it", () => {
    const ghost = (buriedMs: number, happening: Happening, atMs: number) => {
      const story = new Story().at(0).withdraws("p/0", buriedMs).at(atMs).happens(happening);
      return checkGhosts(story.at(2_000).queues("p/0").entries);
    };
    const back = { type: "stepped", byMs: -5_000 } as const;
    expect(ghost(500, { type: "forgot" }, 1)).toEqual([]);
    expect(ghost(500, back, 600)).toEqual([]);
    expect(ghost(-500, back, 1)).toEqual([]);
    // The tombstone is still there: clocks drift by a hundredth.
    expect(ghost(500, back, 496)).toEqual([]);
    expect(ghost(500, back, 494)).toHaveLength(1);
    // No copy may come.
    expect(ghost(0, { type: "forgot" }, 1)).toHaveLength(1);
    expect(ghost(0, back, 600)).toHaveLength(1);
    expect(ghost(500, { type: "stepped", byMs: 5_000 }, 600)).toHaveLength(1);
  });

  it("is excused by a clock set ahead past the end of its tombstone, and then back", () => {
    const ghost = (byMs: number) => {
      const story = new Story()
        .at(0)
        .withdraws("p/0", 500)
        .at(10)
        .happens({ type: "stepped", byMs });
      story.at(100).happens({ type: "stepped", byMs: -5_000 });
      return checkGhosts(story.at(2_000).queues("p/0").entries);
    };
    expect(ghost(400)).toEqual([]);
    expect(ghost(390)).toHaveLength(1);
  });

  it("is excused by a copy that no client knows of, unless there is a tombstone", () => {
    const ghost = (buriedMs: number) => {
      const story = new Story().at(0).withdraws("p/0", buriedMs).at(1).queues("p/0");
      return checkGhosts(story.entries, true);
    };
    expect(ghost(0)).toEqual([]);
    expect(ghost(-1)).toEqual([]);
    expect(ghost(500)).toHaveLength(1);
  });
});
