import { describe, expect, it } from "vitest";
import { ManualRuntime } from "../../../test/fixtures/manual-runtime.js";
import { networkRuntime } from "../../time/runtime.js";
import type { Driver } from "../redis-client/client.js";
import { type AdmissionRules, admit, type Marker, Membership, type Survey } from "./membership.js";
import { Quorum, RedlockNode } from "./quorum.js";

const SET = "a,b,c";
const KEYS = ["holdfast:node"];
const LIMITS = { nodeTimeoutMs: 200, driftFactor: 0.01 };
const RULES = { maxTtlMs: 30_000, announceMs: 60_000, bootstrap: "wait" } as const;
const nowUs = Date.now() * 1_000;

/** A node that answers what it is told to, one answer after the other, and keeps what it hears. */
function scripted(name: string, surveys: readonly (readonly string[])[]) {
  const heard: string[][] = [];
  let asked = 0;
  const driver: Partial<Driver> = {
    send: async (_key, _command, args) => {
      const [verb = "", ...rest] = args.slice(2 + KEYS.length);
      if (verb !== "survey") return heard.push([verb, ...rest]);
      asked += 1;
      return surveys[Math.min(asked, surveys.length) - 1];
    },
  };
  return { node: new RedlockNode(name, driver as Driver), heard };
}

/** As a node tells it: its process, its time; and of which process, set and so on it was told. */
const votes = (run: string, top: number): string[] => [
  ...[run, "1000", `${nowUs}`],
  ...[run, SET, "0", "30000", "1", `${top}`, "0", "0"],
];

it("a node learns its floor from answers that are younger than its own", async () => {
  const a = scripted("a", [votes("1", 50), votes("1", 50)]);
  // It answered, then voted, and only then the time of the third had come.
  const b = scripted("b", [votes("2", 60), votes("2", 90)]);
  const due = ["3", "1000", `${nowUs}`, "3", SET, "1", "30000", "", "0", "0", "0"];
  const c = scripted("c", [due]);
  const nodes = [a, b, c].map(({ node }) => node);
  await new Membership(new Quorum(nodes, LIMITS, networkRuntime()), KEYS, RULES).readmit();
  expect(c.heard).toEqual([["admit", "3", "90"]]);
  expect([...a.heard, ...b.heard]).toEqual([]);
});

it("an announcement counts for as long as nodes with fast clocks remember it", async () => {
  const runtime = new ManualRuntime();
  const nodes = ["a", "b", "c"].map((name) => scripted(name, []));
  const quorum = new Quorum(
    nodes.map(({ node }) => node),
    LIMITS,
    runtime,
  );
  const membership = new Membership(quorum, KEYS, RULES);
  expect(membership.isAnnounced(90_000)).toBe(false);
  expect(await membership.announce(90_000)).toBe(true);
  expect(nodes[0]?.heard).toEqual([["raise", SET, "90000", "60000"]]);
  expect(membership.isAnnounced(90_001), "that is longer").toBe(false);
  await runtime.advance(44_999);
  expect(membership.isAnnounced(90_000)).toBe(true);
  await runtime.advance(1);
  expect(membership.isAnnounced(90_000)).toBe(false);
});

const NOW_US = 1_700_000_000_000_000;
const rules: AdmissionRules = { set: "a,b,c", maxTtlMs: 30_000, restMs: 0, bootstrap: "wait" };
const sure: AdmissionRules = { ...rules, bootstrap: "now" };

function survey(run: string, marker: Partial<Marker> | null): Survey {
  const long = { longTtlMs: 0, longUntilMs: 0 };
  const known = { run, set: rules.set, fromMs: 0, maxTtlMs: 30_000, ...long, floor: 1, top: 5 };
  return { run, nowUs: NOW_US, marker: marker && { ...known, ...marker } };
}

const voting = (run: string, more: Partial<Marker> = {}): Survey => survey(run, more);
const forgot = (run: string): Survey => survey(run, null);
const restarted = (run: string, more: Partial<Marker> = {}): Survey =>
  survey(run, { ...more, run: "before" });

/** Where all answers are of one time. */
const admitted = (surveys: (Survey | null)[], by: AdmissionRules): ReturnType<typeof admit> =>
  admit(surveys, surveys, by);

describe("nodes that vote", () => {
  it("are left alone", () => {
    expect(admitted([voting("1"), voting("2"), voting("3")], rules)).toEqual([null, null, null]);
    expect(admitted([voting("1"), voting("2"), null], sure)).toEqual([null, null, null]);
  });
});

describe("a node that forgot", () => {
  it("joins a majority that remembers, after the longest lease that it knows of", () => {
    const others = [voting("1", { maxTtlMs: 90_000 }), voting("2")];
    for (const node of [forgot("3"), restarted("3")]) {
      const joins = {
        type: "mark",
        run: "3",
        how: "join",
        maxTtlMs: 90_000,
        restMs: 0,
        floor: null,
      };
      expect(admitted([...others, node], rules)[2]).toEqual(joins);
      expect(admitted([...others, node], sure)[2], "also with bootstrap: now").toEqual(joins);
    }
    const before = restarted("3", { maxTtlMs: 120_000 });
    expect(admitted([...others, before], rules)[2]).toMatchObject({ maxTtlMs: 120_000 });
  });

  it("then learns which ballots it may have forgotten, when its wait is over", () => {
    const others = [voting("1", { top: 70 }), voting("2", { top: 50 })];
    const early = survey("3", { floor: null, fromMs: NOW_US / 1000 + 1 });
    expect(admitted([...others, early], rules)[2]).toBe(null);
    const due = survey("3", { floor: null, fromMs: NOW_US / 1000 });
    expect(admitted([...others, due], rules)[2]).toEqual({ type: "admit", run: "3", floor: 70 });
  });

  it("learns from answers that are younger than its own", () => {
    const early = [voting("1", { top: 70 }), voting("2", { top: 50 })];
    const late = [voting("1", { top: 70 }), voting("2", { top: 90, maxTtlMs: 90_000 })];
    const due = survey("3", { floor: null, fromMs: NOW_US / 1000 });
    expect(admit([...early, due], [...late, due], rules)[2]).toMatchObject({ floor: 90 });
    const node = forgot("3");
    expect(admit([...early, node], [...late, node], rules)[2]).toMatchObject({ maxTtlMs: 90_000 });
    // By then too few others know: it waits.
    const fewer = [voting("1"), null, due];
    expect(admit([...early, due], fewer, rules)[2]).toBe(null);
  });

  it("waits for longer leases only while one of them may live", () => {
    const day = 24 * 3_600_000;
    const told = (untilMs: number): Survey =>
      voting("1", { longTtlMs: day, longUntilMs: NOW_US / 1000 + untilMs });
    const wait = (...others: Survey[]): unknown => {
      const instruction = admitted([...others, forgot("3")], rules)[2];
      return instruction?.type === "mark" && instruction.restMs;
    };
    expect(wait(told(3_600_000), voting("2")), "they may still be granted").toBe(day + 3_600_000);
    expect(wait(told(0), voting("2")), "the last was granted now").toBe(day);
    expect(wait(told(1 - day), voting("2"))).toBe(1);
    expect(wait(told(-day), voting("2"))).toBe(0);
    const all = [voting("1"), voting("2"), forgot("3")];
    const [, , third] = admitted(all, { ...rules, restMs: 7 });
    expect(third, "as this client knows").toMatchObject({ maxTtlMs: 30_000, restMs: 7 });
  });

  it("waits while nodes that may remember are silent", () => {
    expect(admitted([voting("1"), null, forgot("3")], rules)[2]).toBe(null);
    expect(admitted([voting("1"), null, forgot("3")], sure)[2]).toMatchObject({ how: "now" });
    const due = survey("3", { floor: null, fromMs: 0 });
    expect(admitted([voting("1"), null, due], rules)[2]).toBe(null);
  });
});

describe("where no majority remembers", () => {
  it("nodes vote after the longest lease since they began", () => {
    const all = [forgot("1"), restarted("2", { maxTtlMs: 60_000, top: 9 }), null];
    const [first, second, third] = admitted(all, rules);
    const boots = { type: "mark", how: "boot", floor: NOW_US };
    // The second kept its marker: it alone knows how long leases may be.
    expect(first).toEqual({ ...boots, run: "1", maxTtlMs: 60_000, restMs: 0 });
    expect(second).toEqual({ ...boots, run: "2", maxTtlMs: 60_000, restMs: 0 });
    expect(third).toBe(null);
  });

  it("a node that waits tells the next one what it waits for", () => {
    const hourMs = 3_600_000;
    const young = (more: Partial<Marker>): Survey =>
      survey("1", { floor: null, fromMs: NOW_US / 1000 + hourMs, ...more });
    const boots = { type: "mark", how: "boot", maxTtlMs: 30_000, restMs: hourMs };
    // The second node votes, but was not among the majority that knew of the long lease.
    const told = (first: Survey): unknown => admitted([first, voting("2"), forgot("3")], rules)[2];
    expect(told(young({}))).toMatchObject(boots);
    expect(told(young({ maxTtlMs: 90_000 }))).toMatchObject({ ...boots, maxTtlMs: 90_000 });
    const longUntilMs = NOW_US / 1000 + hourMs;
    expect(told(young({ longTtlMs: 500, longUntilMs }))).toMatchObject({ restMs: hourMs + 500 });
    const before = restarted("1", { longTtlMs: 500, longUntilMs, maxTtlMs: 60_000 });
    expect(told(before)).toMatchObject({ restMs: hourMs + 500, maxTtlMs: 60_000 });
    const strange = restarted("1", { set: "x", longTtlMs: 500, longUntilMs });
    expect(told(strange)).toMatchObject({ restMs: 0 });
  });

  it("a node that votes is still asked for its ballots", () => {
    const top = NOW_US + 1_000;
    const [, second] = admitted([voting("1", { top }), forgot("2"), forgot("3")], rules);
    expect(second).toMatchObject({ how: "boot", floor: top });
  });

  it('nodes vote at once with `bootstrap: "now"`, also when they wait already', () => {
    const young = survey("2", { fromMs: NOW_US / 1000 + 9_000 });
    const all = [forgot("1"), young, survey("3", { floor: null })];
    for (const instruction of admitted(all, sure))
      expect(instruction).toMatchObject({ how: "now" });
    expect(admitted(all, rules)[1]).toBe(null);
  });

  it("a node that joined and lost its majority begins with the known ballots", () => {
    const due = survey("1", { floor: null, fromMs: 0 });
    const [first] = admitted([due, forgot("2"), forgot("3")], rules);
    expect(first).toEqual({ type: "admit", run: "1", floor: NOW_US });
  });
});

describe("nodes of another set", () => {
  it('are left alone, except with `bootstrap: "now"`', () => {
    const strange = [voting("1", { set: "x" }), voting("2", { set: "x" }), forgot("3")];
    expect(admitted(strange, rules)).toEqual([null, null, null]);
    for (const instruction of admitted(strange, sure)) {
      expect(instruction).toMatchObject({ how: "now" });
    }
  });

  it("are not taken from a majority that remembers", () => {
    const all = [voting("1"), voting("2"), voting("3", { set: "x" })];
    expect(admitted(all, sure)[2]).toBe(null);
  });
});

it("of five nodes, two may forget at a time", () => {
  const all = [voting("1"), voting("2"), voting("3"), forgot("4"), forgot("5")];
  for (const instruction of admitted(all, rules).slice(3)) {
    expect(instruction).toMatchObject({ how: "join" });
  }
});
