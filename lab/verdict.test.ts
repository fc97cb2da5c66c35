import { expect, it } from "vitest";
import { checkExclusionByProbes } from "../simulation/checkers/exclusion.js";
import { livesOf } from "../simulation/checkers/life.js";
import type { Entry } from "./history.js";
import { judge, simulated, type Terms } from "./verdict.js";

const terms: Terms = { patienceMs: 500, isEndless: false, isOrdered: false, endMs: 3_000 };

/** A process that asks, works and releases. */
function turn(lane: string, atMs: number, toMs: number): Entry[] {
  return [
    { type: "asks", lane, atMs: atMs - 5 },
    { type: "believes", lane, atMs },
    { type: "worksFrom", lane, atMs },
    { type: "worksTo", lane, atMs: toMs },
    { type: "releases", lane, atMs: toMs },
  ];
}

function verdictOf(entries: readonly Entry[], changed: Partial<Terms> = {}) {
  const inOrder = [...entries].sort((one, other) => one.atMs - other.atMs);
  return judge(inOrder, { ...terms, ...changed });
}

it("turns that follow each other are held", () => {
  const verdict = verdictOf([...turn("A", 10, 100), ...turn("B", 101, 200)]);
  expect(verdict).toMatchObject({ kind: "held" });
});

it("turns that overlap are two held, for as long as both worked", () => {
  const verdict = verdictOf([...turn("A", 10, 300), ...turn("B", 100, 400)]);
  expect(verdict).toEqual({ kind: "two held", ms: 200, text: "two held for 200 ms" });
});

it("a holder that is told after the next one worked is told late", () => {
  const told: Entry = { type: "told", lane: "A", reason: "missing", atMs: 300 };
  const verdict = verdictOf([...turn("A", 10, 299), told, ...turn("B", 100, 400)]);
  expect(verdict).toMatchObject({ kind: "told late", ms: 199 });
});

it("the rightful holder being told does not excuse the first", () => {
  const told: Entry = { type: "told", lane: "B", reason: "missing", atMs: 401 };
  const verdict = verdictOf([...turn("A", 10, 300), ...turn("B", 100, 400), told]);
  expect(verdict.kind).toBe("two held");
});

it("a holder that stops before the next one works is told in time", () => {
  const [asks, believes, from, to] = turn("A", 10, 90);
  const stops: Entry = { type: "disbelieves", lane: "A", why: "its check says so", atMs: 91 };
  const entries = [asks, believes, from, to].filter((one) => one !== undefined);
  expect(verdictOf([...entries, stops, ...turn("B", 100, 200)]).kind).toBe("told in time");
});

it("a process that asks longer than its patience for a free lock is stuck", () => {
  const asks: Entry = { type: "asks", lane: "B", atMs: 100 };
  expect(verdictOf([asks])).toMatchObject({ kind: "stuck", ms: 2_900 });
  expect(verdictOf([asks], { isEndless: true })).toMatchObject({ kind: "stuck", ms: null });
  expect(verdictOf([asks, ...turn("B", 599, 700).slice(1)]).kind).toBe("held");
  expect(verdictOf([asks, ...turn("B", 601, 700).slice(1)]).kind).toBe("stuck");
});

it("time in which another process believes is no wait", () => {
  const asks: Entry = { type: "asks", lane: "B", atMs: 20 };
  const served = turn("B", 1_000, 1_100).slice(1);
  expect(verdictOf([...turn("A", 10, 990), asks, ...served]).kind).toBe("held");
});

it("a killed holder does not believe: the wait begins with its end", () => {
  const holder = turn("A", 10, 50).slice(0, 4);
  const killed: Entry = { type: "fault", lane: "A", what: "killed", text: "kill -9", atMs: 51 };
  const asks: Entry = { type: "asks", lane: "B", atMs: 52 };
  const served = turn("B", 852, 900).slice(1);
  const verdict = verdictOf([...holder, killed, asks, ...served]);
  expect(verdict).toMatchObject({ kind: "stuck", ms: 800 });
});

it("a wait behind a late copy is a ghost", () => {
  const copy: Entry = { type: "fault", lane: "A", what: "late copy", text: "", atMs: 90 };
  const asks: Entry = { type: "asks", lane: "B", atMs: 100 };
  expect(verdictOf([...turn("A", 10, 80), copy, asks]).kind).toBe("ghost");
});

it("says that a process never had the lock, unless it was killed", () => {
  const asks: Entry = { type: "asks", lane: "B", atMs: 20 };
  const refused: Entry = { type: "refused", lane: "B", why: "no", atMs: 30 };
  const killed: Entry = { type: "fault", lane: "B", what: "killed", text: "", atMs: 31 };
  const others = [...turn("A", 10, 90), asks, refused];
  expect(verdictOf(others).text).toBe("held by one at a time; B never had it");
  expect(verdictOf([...others, killed]).text).toBe("held by one at a time");
});

it("a late write counts unless the resource refused it", () => {
  const write = (isRefused: boolean): Entry => ({
    type: "writes",
    lane: "A",
    isRefused,
    atMs: 250,
  });
  const turns = [...turn("A", 10, 90), ...turn("B", 100, 200)];
  expect(verdictOf([...turns, write(false)])).toMatchObject({ kind: "two held", ms: 0 });
  expect(verdictOf([...turns, write(true)])).toMatchObject({ kind: "held" });
});

it("a process that is served before one that asked first overtakes it, where order counts", () => {
  const asks: Entry = { type: "asks", lane: "B", atMs: 20 };
  const entries = [...turn("A", 10, 90), asks, ...turn("C", 100, 200)];
  const served = [...entries, ...turn("B", 300, 400).slice(1)];
  expect(verdictOf(served, { isOrdered: true }).kind).toBe("overtaken");
  expect(verdictOf(served).kind).toBe("held");
  // C came when B had been served.
  const inOrder = [...turn("A", 10, 90), ...turn("B", 100, 200), ...turn("C", 300, 400)];
  expect(verdictOf(inOrder, { isOrdered: true }).kind).toBe("held");
});

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
