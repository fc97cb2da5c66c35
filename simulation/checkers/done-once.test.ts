import { describe, expect, it } from "vitest";
import type { Happening } from "../history.js";
import { checkDoneOnce } from "./done-once.js";
import { Story } from "./story.js";

const DONE = { type: "done", name: "a", lease: "p/0", untilMs: 1_000 } as const;

describe("the work of a once", () => {
  it("is not done again before its mark ends", () => {
    const story = new Story().at(0).happens({ type: "calm" }).asks("p/0").holds("p/0", 10n, 500);
    story.at(100).happens(DONE);
    expect(checkDoneOnce(story.entries)).toEqual([]);
    story.at(200).asks("q/0").at(1_000).holds("q/0", 20n, 2_000);
    expect(checkDoneOnce(story.entries)).toEqual([]);
    const [violation] = checkDoneOnce(story.at(900).holds("q/1", 15n, 2_000).entries);
    expect(violation?.message).toBe('q/1 repeats the work of "a" that p/0 did');
  });

  /** Before all is calm: `p` releases, the store executes that, and `q` holds at 800. */
  function repeated(withdrawnMs: number, faults: readonly Happening[] = []) {
    const story = new Story().at(0).asks("p/0").holds("p/0", 10n, 500).at(90).releases("p/0");
    story.at(withdrawnMs).withdraws("p/0 owner").at(100).happens(DONE).at(600);
    for (const fault of faults) story.happens(fault);
    return checkDoneOnce(story.asks("q/0").at(800).holds("q/0", 20n, 2_000).entries);
  }

  it("may be done again where the store left no mark", () => {
    expect(repeated(95)).toHaveLength(1);
    expect(repeated(501)).toEqual([]);
  });

  it.each<[string, Happening, number, number]>([
    ["was revoked", { type: "revoked", name: "a", token: 10n }, 50, 0],
    ["was revoked later", { type: "revoked", name: "a", token: 10n }, 96, 1],
    ["was forgotten", { type: "forgot" }, 50, 0],
    ["was ended by a jump of the clock", { type: "stepped", byMs: 410 }, 50, 0],
    ["was shortened by a jump of the clock, but not enough", { type: "stepped", byMs: 300 }, 50, 1],
  ])("may be done again where the lease %s before its release", (_, fault, atMs, count) => {
    const story = new Story().at(0).asks("p/0").holds("p/0", 10n, 500).at(atMs).happens(fault);
    story.at(90).releases("p/0").at(95).withdraws("p/0 owner").at(100).happens(DONE);
    const again = story.at(600).asks("q/0").holds("q/0", 20n, 2_000);
    expect(checkDoneOnce(again.entries)).toHaveLength(count);
  });

  it("may be done again a little earlier where the clocks of store and program drift", () => {
    const again = (atMs: number, happenings: readonly Happening[] = []) => {
      const story = new Story().at(0);
      for (const happening of happenings) story.happens(happening);
      story.asks("p/0").holds("p/0", 10n, 500).at(90).releases("p/0");
      story.at(95).withdraws("p/0 owner").at(100).happens(DONE).asks("q/0");
      return checkDoneOnce(story.at(atMs).holds("q/0", 20n, 2_000).entries);
    };
    expect(again(992)).toEqual([]);
    expect(again(990)).toHaveLength(1);
    expect(again(992, [{ type: "calm" }])).toHaveLength(1);
  });

  it("is not done by a lease that had ended when its program got it, if it is older", () => {
    const late = (grantedMs: number, untilMs: number, happenings: readonly Happening[] = []) => {
      const story = new Story().at(0);
      for (const happening of happenings) story.happens(happening);
      story.asks("p/0").holds("p/0", 10n, 500).asks("q/0");
      story.at(grantedMs).grants("q/0 owner", 11n).at(90).releases("p/0");
      story.at(95).withdraws("p/0 owner").at(100).happens(DONE);
      return checkDoneOnce(story.at(600).takes("q/0", 11n, untilMs).entries);
    };
    expect(late(50, 550)).toEqual([]);
    expect(late(50, 601)).toHaveLength(1);
    expect(late(101, 550)).toHaveLength(1);
    expect(late(50, 550, [{ type: "calm" }])).toHaveLength(1);
  });

  it("is not done again for a fault before the release", () => {
    const again = (fault: Happening) => {
      const story = new Story().at(0).happens(fault).at(10).asks("p/0").holds("p/0", 10n, 500);
      story.at(90).releases("p/0").at(95).withdraws("p/0 owner").at(100).happens(DONE);
      return checkDoneOnce(story.at(600).asks("q/0").holds("q/0", 20n, 2_000).entries);
    };
    expect(again({ type: "forgot" })).toHaveLength(1);
    expect(again({ type: "stepped", byMs: 5_000 })).toHaveLength(1);
  });

  it("may be done again where the store executed the release after the program went on", () => {
    expect(repeated(99)).toHaveLength(1);
    expect(repeated(101)).toEqual([]);
  });

  it("may be done again where the mark ended early", () => {
    expect(repeated(95, [{ type: "forgot" }])).toEqual([]);
    expect(repeated(95, [{ type: "stepped", byMs: 300 }])).toEqual([]);
    expect(repeated(95, [{ type: "stepped", byMs: 100 }])).toHaveLength(1);
    expect(repeated(95, [{ type: "stepped", byMs: -300 }])).toHaveLength(1);
  });
});
