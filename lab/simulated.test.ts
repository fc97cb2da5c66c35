import { expect, it } from "vitest";
import { checkExclusionByProbes } from "../simulation/checkers/exclusion.js";
import { livesOf } from "../simulation/checkers/life.js";
import type { Entry } from "./history.js";
import { simulated } from "./simulated.js";

function work(lane: string, fromMs: number, toMs: number): Entry[] {
  return [
    { type: "asks", lane, atMs: fromMs - 1 },
    { type: "believes", lane, token: `${fromMs}`, atMs: fromMs },
    { type: "worksFrom", lane, atMs: fromMs },
    { type: "worksTo", lane, atMs: toMs },
  ];
}

it("the checkers see the life of a lease in each lane", () => {
  const lives = livesOf(simulated([...work("A", 10, 50), ...work("B", 60, 90)]));
  expect([...lives.keys()]).toEqual(["A", "B"]);
  expect(lives.get("A")).toMatchObject({ provenMs: 50, held: { atMs: 10, token: 10n } });
});

it("the checkers find an overlap of work, and none where there is none", () => {
  const apart = simulated([...work("A", 10, 50), ...work("B", 60, 90)]);
  const together = simulated([...work("A", 10, 70), ...work("B", 60, 90)]);
  expect(checkExclusionByProbes(apart)).toEqual([]);
  expect(checkExclusionByProbes(together)).toHaveLength(1);
});

it("faults of the store, truths and writes are no steps of a lease", () => {
  const entries: readonly Entry[] = [
    { type: "fault", lane: "store", what: "failed over", text: "", atMs: 1 },
    { type: "fault", lane: "A", what: "stopped", text: "", atMs: 2 },
    { type: "truth", holder: "A", atMs: 3 },
    { type: "writes", lane: "A", isRefused: false, atMs: 4 },
    { type: "refused", lane: "A", why: "", atMs: 5 },
  ];
  expect(simulated(entries)).toEqual([]);
});

it("a killed process crashes", () => {
  const killed: Entry = { type: "fault", lane: "A", what: "killed", text: "kill -9", atMs: 1 };
  expect(simulated([killed])).toEqual([{ atMs: 1, type: "crashed", process: "A" }]);
});
