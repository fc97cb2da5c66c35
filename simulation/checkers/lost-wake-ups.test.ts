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
