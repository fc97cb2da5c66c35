import { describe, expect, it } from "vitest";
import { checkNeedlessLoss } from "./needless-loss.js";
import { Story } from "./story.js";

const ROUGH = { isHealthy: false, hasStrays: false };
const HEALTHY = { isHealthy: true, hasStrays: false };
const holding = (terms = {}): Story => {
  return new Story().at(0).asks("p/0").at(10).holds("p/0", 10n, 1_000, terms);
};

describe("a lease", () => {
  it("is not lost before its deadline", () => {
    expect(checkNeedlessLoss(holding().at(900).loses("p/0").entries, ROUGH)).toHaveLength(1);
    expect(checkNeedlessLoss(holding().at(1_000).loses("p/0").entries, ROUGH)).toEqual([]);
  });

  it("is lost before only for what the store did", () => {
    const gone = (story: Story) => story.at(500).loses("p/0", "missing").entries;
    expect(checkNeedlessLoss(gone(holding()), ROUGH)).toHaveLength(1);
    const revoked = holding().at(400).happens({ type: "revoked", name: "a", token: 10n });
    expect(checkNeedlessLoss(gone(revoked), ROUGH)).toEqual([]);
    const forgotten = holding().at(400).happens({ type: "forgot" });
    expect(checkNeedlessLoss(gone(forgotten), ROUGH)).toEqual([]);
    const stepped = holding().at(400).happens({ type: "stepped", byMs: 5_000 });
    expect(checkNeedlessLoss(gone(stepped), ROUGH)).toEqual([]);
    const setBack = holding().at(400).happens({ type: "stepped", byMs: -5_000 });
    expect(checkNeedlessLoss(gone(setBack), ROUGH)).toHaveLength(1);
  });

  it("is warned of when only the grace is left", () => {
    const early = holding({ graceMs: 300 }).at(650).loses("p/0");
    expect(checkNeedlessLoss(early.entries, ROUGH)).toHaveLength(1);
    const due = holding({ graceMs: 300 }).at(700).loses("p/0");
    expect(checkNeedlessLoss(due.entries, ROUGH)).toEqual([]);
  });

  it("that is renewed is not lost at all where nothing goes wrong", () => {
    expect(checkNeedlessLoss(holding().at(1_000).loses("p/0").entries, HEALTHY)).toHaveLength(1);
    const fixed = holding({ renews: false }).at(1_000).loses("p/0");
    expect(checkNeedlessLoss(fixed.entries, HEALTHY)).toEqual([]);
    const frozen = { type: "frozen", process: "p", untilMs: 1_200, how: "blocked" } as const;
    const blocked = holding().at(900).happens(frozen).at(1_200).loses("p/0");
    expect(checkNeedlessLoss(blocked.entries, HEALTHY)).toEqual([]);
  });

  it("may be lost by a process that could act only in the last moment before the deadline", () => {
    const until = (untilMs: number): Story => {
      const frozen = { type: "frozen", process: "p", untilMs, how: "blocked" } as const;
      return holding().at(600).happens(frozen).at(1_000).loses("p/0");
    };
    expect(checkNeedlessLoss(until(999.5).entries, HEALTHY)).toEqual([]);
    expect(checkNeedlessLoss(until(990).entries, HEALTHY)).toHaveLength(1);
  });

  it("that was given back is not told to be lost, unless a stray copy did that", () => {
    const story = holding().at(500).releases("p/0").at(510).loses("p/0", "missing");
    expect(checkNeedlessLoss(story.entries, ROUGH)).toHaveLength(1);
    expect(checkNeedlessLoss(story.entries, { ...ROUGH, hasStrays: true })).toEqual([]);
  });
});

describe("an acquisition", () => {
  it("does not fail for a store that is there", () => {
    const refused = { type: "refused", lease: "p/0", reason: "HF_STORE" } as const;
    const story = new Story().at(0).asks("p/0").at(1_000).happens({ type: "calm" });
    expect(checkNeedlessLoss(story.at(2_000).happens(refused).entries, ROUGH)).toEqual([]);
    expect(checkNeedlessLoss(story.at(9_000).happens(refused).entries, ROUGH)).toHaveLength(1);
  });

  it("may fail for a store that its frozen process could not hear", () => {
    const refusedAt = (atMs: number): Story => {
      const story = new Story().at(0).asks("p/0").at(1_000).happens({ type: "calm" });
      story.at(2_000).happens({ type: "frozen", process: "p", untilMs: 20_000, how: "blocked" });
      return story.at(atMs).happens({ type: "refused", lease: "p/0", reason: "HF_STORE" });
    };
    expect(checkNeedlessLoss(refusedAt(20_040).entries, ROUGH)).toEqual([]);
    expect(checkNeedlessLoss(refusedAt(20_200).entries, ROUGH)).toHaveLength(1);
  });
});
