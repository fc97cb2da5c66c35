import { describe, expect, it } from "vitest";
import { checkLostWakeUps } from "./lost-wake-ups.js";
import { Story } from "./story.js";

const BOUND = { boundMs: 100, blockMs: 400, offerMs: 1_000, leaseMs: 5_000, silentMs: 3_000 };
const check = (story: Story, endMs = 1_000) =>
  checkLostWakeUps(story.at(endMs).happens({ type: "calm" }).entries, BOUND);

/** `p` lets go at 100; `q` has been waiting since 50, and gets the lock at `atMs`. */
function waiting(atMs: number): Story {
  const story = new Story().at(0).happens({ type: "calm" }).asks("p/0").holds("p/0", 10n, 900);
  story.at(50).asks("q/0").at(100).releases("p/0");
  return story.at(atMs).holds("q/0", 20n, 9_000);
}

describe("a lock that is free", () => {
  it("goes to a waiter within the bound", () => {
    expect(check(waiting(199))).toEqual([]);
    const [violation] = check(waiting(250));
    expect(violation?.message).toBe('q/0 waits for "a", which is free for 150 ms');
  });

  it("does not stay free while a waiter waits to the end", () => {
    const story = new Story().at(0).happens({ type: "calm" }).asks("p/0");
    expect(check(story)).toHaveLength(1);
  });

  it("may stay free when no acquisition waits", () => {
    const refused = { type: "refused", lease: "p/0", reason: "timeout" } as const;
    const story = new Story().at(0).asks("p/0").at(50).happens(refused);
    expect(check(story.at(60).asks("p/1", { waits: false }))).toEqual([]);
  });

  it("counts only from when all is calm", () => {
    const story = new Story().at(0).asks("p/0").at(900).happens({ type: "calm" });
    expect(check(story.at(950).holds("p/0", 10n, 9_000))).toEqual([]);
  });

  it("is one that every waiter would fit in", () => {
    const claim = { mode: "shared", limit: 2 } as const;
    const story = (weight: number): Story => {
      const told = new Story().at(0).happens({ type: "calm" }).asks("p/0", claim);
      return told
        .holds("p/0", 10n, 9_000, claim)
        .at(50)
        .asks("q/0", { ...claim, weight });
    };
    expect(check(story(2))).toEqual([]);
    expect(check(story(1))).toHaveLength(1);
    expect(check(story(1).asks("q/1"))).toEqual([]);
  });
});

describe("a reason for a longer wait", () => {
  const free = (): Story => new Story().at(0).happens({ type: "calm" }).asks("q/0").asks("p/0");

  it("is the lease of a holder that died", () => {
    const story = free().holds("p/0", 10n, 900).at(100).happens({ type: "crashed", process: "p" });
    expect(check(story, 1_050)).toEqual([]);
    expect(check(story, 1_200)).toHaveLength(1);
  });

  it("is the lease of a holder that died before its release arrived", () => {
    const story = (crashMs: number): Story => {
      const told = free().holds("p/0", 10n, 900).at(100).releases("p/0");
      told.happens({ type: "released", lease: "p/0" });
      return told.at(crashMs).happens({ type: "crashed", process: "p" });
    };
    expect(check(story(101), 1_050)).toEqual([]);
    expect(check(story(101), 1_200)).toHaveLength(1);
    expect(check(story(201), 1_050), "it had the time to arrive").toHaveLength(1);
    const arrived = story(101).at(102).withdraws("p/0 owner");
    expect(check(arrived, 1_050)).toHaveLength(1);
  });

  it("is an offer that is not confirmed: one for each client", () => {
    const story = free().at(50).grants("r/0", 10n, { isHandoff: true });
    expect(check(story, 1_050)).toEqual([]);
    story.at(1_060).grants("r/1", 11n, { isHandoff: true });
    expect(check(story, 2_000)).toHaveLength(1);
  });

  it("is an offer only until it is given back", () => {
    const story = free().at(50).grants("r/0", 10n, { isHandoff: true }).at(200).withdraws("r/0");
    expect(check(story, 240)).toEqual([]);
    expect(check(story, 300)).toHaveLength(1);
  });

  it("is a process that is frozen, for as long as it is", () => {
    const frozen = { type: "frozen", process: "q", untilMs: 250, how: "blocked" } as const;
    const story = free().at(50).happens(frozen);
    expect(check(story, 290)).toEqual([]);
    expect(check(story, 350)).toHaveLength(1);
  });

  it("is a process that is frozen only up to the longest block", () => {
    const frozen = { type: "frozen", process: "q", untilMs: 5_000, how: "paused" } as const;
    const story = free().at(50).happens(frozen);
    expect(check(story, 490)).toEqual([]);
    expect(check(story, 510)).toHaveLength(1);
  });

  it("is a grant that is confirmed and not used, for as long as a lease", () => {
    const story = free().at(50).grants("r/0", 10n, { isHandoff: true });
    story.at(60).extends(10n);
    expect(check(story, 5_050)).toEqual([]);
    expect(check(story, 5_200)).toHaveLength(1);
    const renewed = free().at(50).grants("r/0", 10n).at(3_000).extends(10n);
    expect(check(renewed, 8_200)).toHaveLength(1);
  });

  it("is an unused grant only until it is revoked", () => {
    const revoked = { type: "revoked", name: "a", token: 10n } as const;
    const story = free().at(50).grants("r/0", 10n).at(200).happens(revoked);
    expect(check(story, 240)).toEqual([]);
    expect(check(story, 300)).toHaveLength(1);
  });

  it("is an unused grant of this name, before the end of the wait", () => {
    expect(check(free().at(50).grants("r/0", 10n, { name: "b" }), 200)).toHaveLength(1);
    const held = free().at(90).grants("r/0", 10n).at(95).holds("q/0", 11n, 9_000);
    held.at(100).releases("q/0").at(100).asks("q/1");
    // The grant that is used is no waste.
    expect(check(held.at(100).grants("r/1", 12n).takes("r/1", 12n, 101), 250)).toEqual([]);
  });

  it("is the offers of one client that go on side by side, counted once", () => {
    const story = free().at(50).grants("r/0", 10n, { isHandoff: true });
    story.at(500).grants("r/1", 11n, { isHandoff: true });
    expect(check(story, 1_090)).toEqual([]);
    expect(check(story, 1_300)).toHaveLength(1);
    story.at(500).grants("s/0", 12n, { isHandoff: true });
    expect(check(story, 1_300)).toEqual([]);
  });

  it("is a waiter that died and cannot be served beside the holders, until it is forgotten", () => {
    const claim = { mode: "shared", limit: 2 } as const;
    const served = (atMs: number): Story => {
      const story = new Story().at(0).happens({ type: "calm" }).asks("p/0", claim);
      story.holds("p/0", 10n, 9_000, claim).asks("r/0", { ...claim, weight: 2 });
      story.asks("q/0", claim).at(10).happens({ type: "crashed", process: "r" });
      return story.at(atMs).holds("q/0", 20n, 9_000, claim);
    };
    expect(check(served(3_100))).toEqual([]);
    expect(check(served(3_120))).toHaveLength(1);
  });

  it("is no clock that was set back before all leases of that time had ended", () => {
    const story = new Story().at(0).happens({ type: "stepped", byMs: -2_000 });
    const late = story.at(10_000).happens({ type: "calm" }).asks("q/0");
    expect(check(late, 10_200)).toHaveLength(1);
  });

  it("is a clock that was set back", () => {
    expect(check(free().at(1).happens({ type: "stepped", byMs: -2_000 }), 2_000)).toEqual([]);
    expect(check(free().at(1).happens({ type: "stepped", byMs: 2_000 }), 2_000)).toHaveLength(1);
  });
});
