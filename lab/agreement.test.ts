import { expect, it } from "vitest";
import { agreementOf, scoreOf, summaryOf } from "./agreement.js";
import type { VerdictKind } from "./history.js";
import type { Sighting } from "./run-log.js";

const seen = (fault: string, kind: VerdictKind, minute: number): Sighting => {
  return { subject: "rung-1", fault, kind, startedAt: `2026-11-17T10:0${minute}:00.000Z` };
};

const agreement = agreementOf([
  seen("lost-reply", "stuck", 1),
  seen("failover", "two held", 3),
  seen("failover", "held", 2),
  seen("lost-reply", "stuck", 5),
  seen("failover", "two held", 4),
  seen("long-work", "held", 6),
]);

it("counts the verdicts of each trial, and knows when they were taken", () => {
  expect(agreement.from).toBe("2026-11-17T10:01:00.000Z");
  expect(agreement.to).toBe("2026-11-17T10:06:00.000Z");
  expect(agreement.verdicts["rung-1 failover"]).toEqual({ "two held": 2, held: 1 });
});

it("gives the score of a trial that was repeated", () => {
  const scores = ["lost-reply", "failover", "long-work", "late-copy"].map((fault) => {
    return scoreOf(agreement, { subject: "rung-1", fault });
  });
  expect(scores).toEqual([
    { same: 2, counts: { stuck: 2 }, runs: 2, text: "2 × stuck" },
    { same: 2, counts: { "two held": 2, held: 1 }, runs: 3, text: "2 × two held, 1 × held" },
    null,
    null,
  ]);
});

it("sums up the trials that were repeated, and names those that do not agree", () => {
  expect(summaryOf(agreement)).toEqual({
    trials: 2,
    agreed: 1,
    fewestRuns: 2,
    divided: [["rung-1 failover", "2 × two held, 1 × held"]],
  });
});
