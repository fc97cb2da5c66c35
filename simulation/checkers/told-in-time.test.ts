import { describe, expect, it } from "vitest";
import { Story } from "./story.js";
import { checkRevocation, checkToldInTime } from "./told-in-time.js";

const messages = (story: Story, endMs = 60_000): string[] =>
  checkToldInTime(story.at(endMs).happens({ type: "calm" }).entries).map(({ message }) => message);

const holding = (terms = {}): Story => {
  return new Story().at(0).asks("p/0").at(10).holds("p/0", 10n, 1_000, terms);
};

describe("a loss", () => {
  it("is told at the deadline", () => {
    expect(messages(holding().at(1_001).loses("p/0"))).toEqual([]);
    expect(messages(holding())).toEqual(["p/0 was not told of its loss (0 ms of grace)"]);
    expect(messages(holding().at(1_050).loses("p/0"))).toHaveLength(1);
  });

  it("is told a grace before", () => {
    expect(messages(holding({ graceMs: 300 }).at(701).loses("p/0"))).toEqual([]);
    expect(messages(holding({ graceMs: 300 }).at(1_000).loses("p/0"))).toHaveLength(1);
  });

  it("is told later to a frozen process, as soon as it runs", () => {
    const frozen = { type: "frozen", process: "p", untilMs: 5_000, how: "paused" } as const;
    expect(messages(holding().at(900).happens(frozen).at(5_001).loses("p/0"))).toEqual([]);
    expect(messages(holding().at(900).happens(frozen).at(5_100).loses("p/0"))).toHaveLength(1);
  });

  it("is not told later for a freeze that begins when it is overdue", () => {
    const frozen = { type: "frozen", process: "p", untilMs: 5_000, how: "paused" } as const;
    const story = (fromMs: number) => holding().at(fromMs).happens(frozen).at(1_300).loses("p/0");
    expect(messages(story(1_010))).toEqual([]);
    expect(messages(story(1_011))).toHaveLength(1);
  });

  it("has only the rest of its time left after a freeze", () => {
    const frozen = { type: "frozen", process: "p", untilMs: 5_000, how: "paused" } as const;
    const story = (lostMs: number) => holding().at(1_008).happens(frozen).at(lostMs).loses("p/0");
    expect(messages(story(5_001))).toEqual([]);
    expect(messages(story(5_005))).toHaveLength(1);
  });

  it("is told within a second after the machine slept, unless that was noticed before", () => {
    const slept = (fromMs: number) => {
      const how = "suspended" as const;
      const frozen = { type: "frozen", process: "p", untilMs: fromMs + 100, how } as const;
      const story = new Story().at(0).asks("p/0").at(10).holds("p/0", 10n, 3_000);
      return messages(story.at(fromMs).happens(frozen).at(3_900).loses("p/0"));
    };
    expect(slept(2_000)).toEqual([]);
    expect(slept(1_000)).toHaveLength(1);
  });

  it("is told to a frozen process that got the lease when it was over", () => {
    const frozen = { type: "frozen", process: "p", untilMs: 2_000, how: "paused" } as const;
    const story = () => {
      return new Story()
        .at(0)
        .asks("p/0")
        .at(10)
        .happens(frozen)
        .at(2_000)
        .holds("p/0", 10n, 1_000);
    };
    expect(messages(story().loses("p/0"))).toEqual([]);
    expect(messages(story())).toEqual(["p/0 was not told of its loss (0 ms of grace)"]);
  });

  it("is not told to a program that let go, or does not listen", () => {
    expect(messages(holding().at(900).releases("p/0"))).toEqual([]);
    expect(messages(holding({ listens: false }))).toEqual([]);
  });
});

describe("a lease", () => {
  it("is not over when it is given", () => {
    const story = new Story().at(10).asks("p/0").at(2_000).holds("p/0", 10n, 1_000);
    expect(messages(story.loses("p/0"))).toEqual(["p/0 was over when it was given"]);
    // A freeze that begins only now is no excuse.
    const frozen = { type: "frozen", process: "p", untilMs: 2_500, how: "blocked" } as const;
    expect(messages(story.happens(frozen))).toEqual(["p/0 was over when it was given"]);
    // Nor is one that ended a moment before.
    const awake = { ...frozen, untilMs: 1_998 };
    expect(messages(story.at(1_500).happens(awake))).toEqual(["p/0 was over when it was given"]);
  });

  it("is not relied on for longer than it may be held", () => {
    const story = holding({ longestMs: 500 }).at(1_001).loses("p/0");
    expect(messages(story)).toEqual(["p/0 is relied on for too long"]);
  });
});

describe("a result", () => {
  it("is told within the wait", () => {
    const story = new Story().at(0).asks("p/0", { withinMs: 500 });
    expect(messages(story)).toEqual(["p/0 was to be told within 500 ms, and was not"]);
    expect(messages(story.at(501).holds("p/0", 1n, 700).at(600).releases("p/0"))).toEqual([]);
  });

  it("is told later by as long as the machine slept", () => {
    const asked = (toldMs: number) => {
      const frozen = { type: "frozen", process: "p", untilMs: 400, how: "suspended" } as const;
      const story = new Story().at(0).asks("p/0", { withinMs: 500 }).at(100).happens(frozen);
      return messages(story.at(toldMs).holds("p/0", 1n, 9_000).at(8_000).releases("p/0"));
    };
    expect(asked(1_050)).toEqual([]);
    expect(asked(1_070)).toHaveLength(1);
  });

  it("is not told later because the machine slept before", () => {
    const frozen = { type: "frozen", process: "p", untilMs: 400, how: "suspended" } as const;
    const story = new Story().at(100).happens(frozen).at(500).asks("p/0", { withinMs: 500 });
    story.at(1_300).holds("p/0", 1n, 9_000).at(8_000).releases("p/0");
    expect(messages(story)).toHaveLength(1);
  });

  describe("of a release", () => {
    const releasedAt = (atMs: number, how?: "blocked" | "suspended", frozenMs = 1_000): Story => {
      const story = holding().at(900).releases("p/0").at(frozenMs);
      if (how) story.happens({ type: "frozen", process: "p", untilMs: frozenMs + 300, how });
      return story.at(atMs).happens({ type: "released", lease: "p/0" });
    };
    const late = ["the release of p/0 took too long"];

    it("is told within its bound", () => {
      expect(messages(releasedAt(5_905))).toEqual([]);
      expect(messages(releasedAt(5_915))).toEqual(late);
      expect(messages(releasedAt(5_915, "blocked"))).toEqual(late);
    });

    it("is told later by as long as the machine slept", () => {
      expect(messages(releasedAt(6_205, "suspended"))).toEqual([]);
      expect(messages(releasedAt(6_215, "suspended"))).toEqual(late);
      expect(messages(releasedAt(6_000, "suspended", 500))).toEqual(late);
    });

    it("may be told later where several nodes are asked", () => {
      const check = (atMs: number) => checkToldInTime(releasedAt(atMs).entries, { releaseMs: 100 });
      expect(check(6_005)).toEqual([]);
      expect(check(6_015)).toHaveLength(1);
    });
  });
});

describe("a revocation", () => {
  it("is told as soon as a message comes", () => {
    const story = holding().at(100).happens({ type: "revoked", name: "a", token: 10n });
    expect(checkRevocation(story.entries, 5)).toHaveLength(1);
    story.at(104).loses("p/0", "revoked");
    expect(checkRevocation(story.entries, 5)).toEqual([]);
  });

  it("is told later to a frozen process, as soon as it runs", () => {
    const lostAt = (atMs: number) => {
      const story = holding().at(100).happens({ type: "revoked", name: "a", token: 10n });
      story.happens({ type: "frozen", process: "p", untilMs: 500, how: "blocked" });
      return checkRevocation(story.at(atMs).loses("p/0", "revoked").entries, 5);
    };
    expect(lostAt(514)).toEqual([]);
    expect(lostAt(516)).toHaveLength(1);
  });

  it("is told in the same time to a program that gets the lease after it", () => {
    const heldAt = (atMs: number) => {
      const story = new Story().at(0).asks("p/0").at(10).grants("p/0 owner", 10n);
      story.at(100).happens({ type: "revoked", name: "a", token: 10n });
      const taken = story
        .at(atMs)
        .takes("p/0", 10n, 1_000)
        .at(atMs + 1);
      return checkRevocation(taken.loses("p/0", "revoked").entries, 5);
    };
    expect(heldAt(110)).toEqual([]);
    expect(heldAt(115)).toHaveLength(1);
  });
});
