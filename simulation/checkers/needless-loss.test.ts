import { describe, expect, it } from "vitest";
import { CALL_TIMEOUT_MS } from "../../src/families/ledger/command-batcher.js";
import type { Happening } from "../history.js";
import { checkNeedlessLoss } from "./needless-loss.js";
import { Story } from "./story.js";

const CALM = { type: "calm" } as const;
const rough = (story: Story) => checkNeedlessLoss(story.entries, false);
const holding = (terms = {}): Story => {
  return new Story().at(0).asks("p/0").at(10).holds("p/0", 10n, 1_000, terms);
};
const calmHolding = (terms = {}): Story => {
  return new Story().at(0).happens(CALM).asks("p/0").at(10).holds("p/0", 10n, 1_000, terms);
};

describe("a lease", () => {
  it("is not lost before its deadline", () => {
    expect(rough(holding().at(900).loses("p/0"))).toHaveLength(1);
    expect(rough(holding().at(1_000).loses("p/0"))).toEqual([]);
  });

  it("is lost before only for what the store did", () => {
    const gone = (story: Story, reason = "missing") => rough(story.at(500).loses("p/0", reason));
    expect(gone(holding())).toHaveLength(1);
    const revoked = () => holding().at(400).happens({ type: "revoked", name: "a", token: 10n });
    expect(gone(revoked())).toEqual([]);
    const lapsed = () => holding().at(400).happens({ type: "lapsed", name: "a", token: 10n });
    expect(gone(lapsed(), "session_ended")).toHaveLength(1);
    const forgotten = () => holding().at(400).happens({ type: "forgot" });
    expect(gone(forgotten())).toEqual([]);
    const restarted = (...owners: string[]) =>
      holding().at(400).happens({ type: "node", node: 1, what: "restarts", owners });
    expect(gone(restarted("p/0 owner"))).toEqual([]);
    expect(gone(restarted("q/0 owner"))).toHaveLength(1);
    for (const ended of [revoked(), forgotten()]) {
      expect(gone(ended, "expired")).toHaveLength(1);
      expect(gone(ended, "max_hold")).toHaveLength(1);
    }
  });

  it.each<Happening>([
    { type: "revoked", name: "a", token: 10n },
    { type: "forgot" },
    { type: "node", node: 1, what: "restarts", owners: ["p/0 owner"] },
    { type: "stepped", byMs: 5_000 },
    { type: "stepped", byMs: 5_000, node: 1, owners: ["p/0 owner"] },
  ])("is not lost by what the store did after the loss: $type", (happening) => {
    const story = holding().at(500).loses("p/0", "missing");
    expect(rough(story.at(501).happens(happening))).toHaveLength(1);
  });

  it.each<Happening>([
    { type: "forgot" },
    { type: "revoked", name: "a", token: 10n },
    { type: "stepped", byMs: 5_000 },
  ])("is not lost by what the store did before it last renewed the lease: $type", (happening) => {
    const story = holding().at(300).happens(happening).at(400).extends(10n);
    expect(rough(story.at(500).loses("p/0", "missing"))).toHaveLength(1);
  });

  it.each<Happening>([
    { type: "node", node: 1, what: "restarts", owners: ["p/0 owner"] },
    { type: "stepped", byMs: 5_000, node: 1, owners: ["p/0 owner"] },
  ])("is not lost by a node that has voted again since: $type", (happening) => {
    const story = holding().at(300).happens(happening).at(500).loses("p/0", "missing");
    expect(rough(story)).toEqual([]);
    const again = { type: "vote renewed", node: 1, name: "a", owner: "p/0 owner" } as const;
    expect(rough(story.at(400).happens(again))).toHaveLength(1);
  });

  it("is not lost by a node that is told something else", () => {
    const admits = { type: "node", node: 1, what: "admits", owners: ["p/0 owner"] } as const;
    const story = holding().at(400).happens(admits);
    expect(rough(story.at(500).loses("p/0", "missing"))).toHaveLength(1);
  });

  it("may be lost a little early after the machine slept", () => {
    const lostAt = (atMs: number, how: "suspended" | "paused") => {
      const frozen = { type: "frozen", process: "p", untilMs: 300, how } as const;
      return rough(holding().at(200).happens(frozen).at(atMs).loses("p/0"));
    };
    expect(lostAt(975, "suspended")).toEqual([]);
    expect(lostAt(965, "suspended")).toHaveLength(1);
    expect(lostAt(975, "paused")).toHaveLength(1);
  });

  it("is lost by a jump of the clock no earlier than by that jump", () => {
    const jumped = (byMs: number, owners?: string[]) => {
      const step = { type: "stepped", byMs, ...(owners ? { owners } : {}) } as const;
      return rough(holding().at(400).happens(step).at(500).loses("p/0", "missing"));
    };
    expect(jumped(5_000)).toEqual([]);
    expect(jumped(500)).toEqual([]);
    expect(jumped(400)).toHaveLength(1);
    expect(jumped(-5_000)).toHaveLength(1);
    expect(jumped(5_000, ["p/0 owner"])).toEqual([]);
    expect(jumped(5_000, ["q/0 owner"])).toHaveLength(1);
  });

  it("is lost by all jumps since the store promised it up to its deadline", () => {
    const jumpedTwice = (remainingMs: number): Story => {
      const step = { type: "stepped", byMs: 300 } as const;
      const story = holding().at(300).happens(step).at(350).extends(10n, remainingMs);
      return story.at(400).happens(step).at(500).loses("p/0", "missing");
    };
    expect(rough(jumpedTwice(640))).toEqual([]);
    expect(rough(jumpedTwice(650))).toHaveLength(1);
  });

  it("is not lost by its maximum before it", () => {
    const story = (longestMs: number) => holding({ longestMs }).at(1_000).loses("p/0", "max_hold");
    expect(rough(story(1_000))).toEqual([]);
    expect(rough(story(1_100))).toHaveLength(1);
  });

  it("is warned of when only the grace is left", () => {
    expect(rough(holding({ graceMs: 300 }).at(650).loses("p/0"))).toHaveLength(1);
    expect(rough(holding({ graceMs: 300 }).at(700).loses("p/0"))).toEqual([]);
    expect(rough(holding({ graceMs: 300 }).at(700).loses("p/0", "missing"))).toHaveLength(1);
  });

  it("that is renewed is not lost at all when nothing goes wrong any more", () => {
    expect(rough(calmHolding().at(1_000).loses("p/0"))).toHaveLength(1);
    expect(rough(calmHolding({ renews: false }).at(1_000).loses("p/0"))).toEqual([]);
    const calmed = () => holding().at(500).happens(CALM);
    expect(rough(calmed().at(1_000).loses("p/0"))).toEqual([]);
    // The store has renewed it since, so no fault keeps its renewals away.
    expect(rough(calmed().at(501).extends(10n).at(1_000).loses("p/0"))).toHaveLength(1);
    const frozen = { type: "frozen", process: "p", untilMs: 1_200, how: "blocked" } as const;
    expect(rough(calmHolding().at(900).happens(frozen).at(1_200).loses("p/0"))).toEqual([]);
  });

  it("does not expire unrenewed if its process got it when all was calm", () => {
    const story = new Story().at(0).asks("p/0").grants("p/0 owner", 10n).at(5).happens(CALM);
    expect(rough(story.at(10).takes("p/0", 10n, 1_000).at(1_000).loses("p/0"))).toHaveLength(1);
  });

  it("may be lost by a process that could act only in the last moment before the deadline", () => {
    const until = (untilMs: number, terms = {}): Story => {
      const frozen = { type: "frozen", process: "p", untilMs, how: "blocked" } as const;
      return calmHolding(terms).at(600).happens(frozen);
    };
    expect(rough(until(999.5).at(1_000).loses("p/0"))).toEqual([]);
    expect(rough(until(990).at(1_000).loses("p/0"))).toHaveLength(1);
    expect(rough(until(699.5, { graceMs: 300 }).at(700).loses("p/0"))).toEqual([]);
    expect(rough(until(690, { graceMs: 300 }).at(700).loses("p/0"))).toHaveLength(1);
    const lost = until(990).at(1_000).loses("p/0").entries;
    expect(checkNeedlessLoss(lost, false, 10)).toEqual([]);
    expect(checkNeedlessLoss(lost, false, 9)).toHaveLength(1);
  });

  it("may be lost by a process that got it with only the grace left, after a freeze", () => {
    const given = (atMs: number): Story => {
      const frozen = { type: "frozen", process: "p", untilMs: 300, how: "blocked" } as const;
      const story = new Story().at(0).happens(CALM).asks("p/0").at(100).happens(frozen);
      return story.at(atMs).holds("p/0", 10n, 1_000, { graceMs: 300 }).at(700).loses("p/0");
    };
    expect(rough(given(699))).toEqual([]);
    expect(rough(given(600))).toHaveLength(1);
    const frozen = { type: "frozen", process: "p", untilMs: 300, how: "blocked" } as const;
    const noGrace = new Story().at(0).happens(CALM).asks("p/0").at(100).happens(frozen);
    noGrace.at(699).holds("p/0", 10n, 700).at(700).loses("p/0");
    expect(rough(noGrace)).toHaveLength(1);
  });

  it("that was given back is not told to be lost, unless a stray copy did that", () => {
    const story = holding().at(500).releases("p/0").at(505).withdraws("p/0 owner");
    const strays = (one: Story) => checkNeedlessLoss(one.entries, true);
    expect(strays(story.at(510).loses("p/0", "missing"))).toHaveLength(1);
    story.at(506).withdraws("p/0 owner");
    expect(strays(story)).toEqual([]);
    expect(rough(story)).toHaveLength(1);
  });
});

describe("an acquisition", () => {
  const refused = { type: "refused", lease: "p/0", reason: "HF_STORE" } as const;

  it("does not fail for a store that is there", () => {
    const story = () => new Story().at(0).asks("p/0").at(1_000).happens(CALM);
    expect(
      rough(
        story()
          .at(1_000 + CALL_TIMEOUT_MS)
          .happens(refused),
      ),
    ).toEqual([]);
    expect(
      rough(
        story()
          .at(1_001 + CALL_TIMEOUT_MS)
          .happens(refused),
      ),
    ).toHaveLength(1);
    const later = new Story().at(1_000).happens(CALM).at(1_001).asks("p/0");
    expect(rough(later.at(1_100).happens(refused))).toHaveLength(1);
  });

  it("may fail at its end for a store that its frozen process could not hear", () => {
    const refusedAt = (atMs: number, withinMs: number): Story => {
      const story = new Story().at(0).happens(CALM).asks("p/0", { withinMs });
      story.at(2_000).happens({ type: "frozen", process: "p", untilMs: 20_000, how: "blocked" });
      return story.at(atMs).happens(refused);
    };
    expect(rough(refusedAt(20_009, 1_000))).toEqual([]);
    expect(rough(refusedAt(20_011, 1_000))).toHaveLength(1);
    expect(rough(refusedAt(20_005, 60_000))).toHaveLength(1);
  });

  it("does not fail because of a freeze that had ended when it asked", () => {
    const frozen = { type: "frozen", process: "p", untilMs: 2_000, how: "blocked" } as const;
    const story = new Story().at(0).happens(CALM).at(1_000).happens(frozen);
    story.at(2_001).asks("p/0", { waits: false, withinMs: 0 }).at(2_005).happens(refused);
    expect(rough(story)).toHaveLength(1);
  });
});
