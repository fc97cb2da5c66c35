import { describe, expect, it } from "vitest";
import { deadlineOf, highestStored, judge, judgeRelease, judgeRenewal } from "./answers.js";
import type { NodeRelease, NodeRenewal, Vote } from "./protocol.js";

const votes: Record<string, Vote> = {
  g: { type: "granted", remainingMs: 1_000 },
  h: { type: "held", stored: 7, remainingMs: 500, record: null, ahead: 0 },
  r: { type: "reserved", stored: 5, remainingMs: 50, ahead: 1 },
  l: { type: "too_low", stored: 9 },
  a: { type: "not_voting", why: "unmarked" },
  t: { type: "time_out" },
  e: { type: "error", error: new Error("no") },
};

/** A letter for each node; a dot has not answered yet. */
const round = (letters: string): (Vote | undefined)[] =>
  [...letters].map((letter) => votes[letter]);

describe("a round of votes", () => {
  it.each([
    // As soon as it is certain, and not before.
    ["ggg..", "granted"],
    ["gg...", null],
    ["gg.tt", null],
    ["ggthh", "refused"],
    ["hhh..", "refused"],
    ["hh...", null],
    ["rrr..", "refused"],
    // With a higher ballot a majority is within reach: also with votes that are already ours.
    ["ggl..", null],
    ["gglll", "raise"],
    ["lll..", "raise"],
    ["ggltt", "raise"],
    ["glltt", "raise"],
    ["glhhh", "refused"],
    // No owner has a majority: two proposers split the votes.
    ["gh", "refused"],
    ["gghh", "refused"],
    ["gghht", "refused"],
    // Nodes that will not vote, and those that may next time.
    ["aaa..", null],
    ["aaagg", "not_voting"],
    ["aattg", "silent"],
    ["ggttt", "silent"],
    ["eeett", "silent"],
    ["ggeaa", "silent"],
  ])("%s: %s", (letters, judgement) => {
    expect(judge(round(letters))).toBe(judgement);
  });

  it("shows the highest ballot that a node knows", () => {
    expect(highestStored(round("gh.lt"))).toBe(9);
    expect(highestStored(round("gg."))).toBe(0);
  });
});

describe("the deadline", () => {
  const granted = (...remaining: number[]): Vote[] =>
    remaining.map((remainingMs) => ({ type: "granted", remainingMs }));

  it("counts from before the requests were sent, less 1 % and 2 ms", () => {
    expect(deadlineOf(granted(1_000, 1_000, 1_000), 5_000, 0.01)).toBe(5_988);
    expect(deadlineOf(granted(1_000, 1_000, 1_000), 5_000, 0.1)).toBe(5_898);
  });

  it("is what a majority reaches, not the longest", () => {
    expect(deadlineOf(granted(9_000, 1_000, 500), 0, 0)).toBe(998);
    expect(deadlineOf([...granted(9_000, 800), { type: "time_out" }], 0, 0)).toBe(798);
  });

  it("does not exist without a majority", () => {
    expect(deadlineOf([...granted(9_000), undefined, undefined], 0, 0)).toBe(
      Number.NEGATIVE_INFINITY,
    );
  });
});

describe("a renewal", () => {
  const answers: Record<string, NodeRenewal> = {
    k: { type: "granted", remainingMs: 1_000, isRetaken: false },
    n: { type: "granted", remainingMs: 1_000, isRetaken: true },
    m: { type: "missing" },
    o: { type: "replaced" },
    v: { type: "revoked", reason: "why" },
    a: { type: "not_voting", why: "unmarked" },
    t: { type: "time_out" },
  };

  it.each([
    ["kk.", "renewed"],
    ["kn.", "renewed"],
    ["nn.", null],
    // Where no node kept it, it is not made anew.
    ["nnn", "gone"],
    ["nnt", "gone"],
    ["mm.", "gone"],
    ["ov.", "gone"],
    ["k.m", null],
    // A node that is silent, or that may have forgotten, is no evidence of a loss.
    ["kta", "unknown"],
    ["kma", "unknown"],
    ["ttt", "unknown"],
  ])("%s: %s", (letters, judgement) => {
    expect(judgeRenewal([...letters].map((letter) => answers[letter]))).toBe(judgement);
  });
});

describe("a release", () => {
  const answers: Record<string, NodeRelease> = {
    r: { type: "released" },
    m: { type: "absent" },
    u: { type: "unsure" },
    t: { type: "time_out" },
  };

  it.each([
    ["rr.", true],
    ["mm.", false],
    ["rm.", null],
    ["rmu", true],
    ["rut", true],
    ["mut", false],
    ["rmm", false],
    ["rtt", "silent"],
  ])("%s: %s", (letters, judgement) => {
    expect(judgeRelease([...letters].map((letter) => answers[letter]))).toBe(judgement);
  });
});
