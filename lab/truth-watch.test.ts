import { expect, it } from "vitest";
import type { Entry } from "./history.js";
import { nowMs } from "./lateness.js";
import { TruthWatch, truthsOf } from "./truth-watch.js";

const entries: readonly Entry[] = [
  { type: "asks", lane: "A", atMs: 60 },
  { type: "believes", lane: "A", token: "7", atMs: 100 },
  { type: "releases", lane: "A", atMs: 200 },
];

it("a token names the lane that believes by it", () => {
  const sightings = [
    { atMs: 98, by: "7" },
    { atMs: 203, by: null },
  ];
  expect(truthsOf(sightings, entries, () => null)).toEqual([
    { atMs: 98, type: "truth", holder: "A", token: "7" },
    { atMs: 203, type: "truth", holder: null },
  ]);
});

it("a value is its lane's while that lane asks or believes, and a ghost's before and after", () => {
  const laneOf = (value: string): string | null => (value === "of-A" ? "A" : null);
  const holders = (sightings: { atMs: number; by: string | null }[]) =>
    truthsOf(sightings, entries, laneOf).map((one) => one.type === "truth" && one.holder);
  expect(holders([{ atMs: 99, by: "of-A" }])).toEqual(["A"]);
  expect(
    holders([
      { atMs: 10, by: "of-A" },
      { atMs: 50, by: null },
    ]),
  ).toEqual(["ghost", null]);
  expect(
    holders([
      { atMs: 10, by: "of-A" },
      { atMs: 70, by: null },
    ]),
  ).toEqual(["A", null]);
  expect(holders([{ atMs: 300, by: "of-A" }])).toEqual(["ghost"]);
  expect(holders([{ atMs: 99, by: "of nobody" }])).toEqual(["ghost"]);
});

it("a watch keeps the changes, and the last truth while the store does not answer", async () => {
  const answers = [null, "a", "a", new Error("no answer"), "a", "b"];
  let isOver = (): void => undefined;
  const over = new Promise<void>((resolve) => {
    isOver = resolve;
  });
  const startMs = nowMs();
  const watch = new TruthWatch(async () => {
    const answer = answers.shift();
    if (answer === undefined) isOver();
    if (answer instanceof Error) throw answer;
    return answer ?? null;
  }, 5);
  await over;
  const seen = await watch.end();
  expect(seen.map(({ by }) => by)).toEqual(["a", "b", null]);
  expect(seen.every(({ atMs }) => atMs >= startMs && atMs <= nowMs())).toBe(true);
});
