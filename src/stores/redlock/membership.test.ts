import { expect, it } from "vitest";
import { ManualRuntime } from "../../../test/fixtures/manual-runtime.js";
import { networkRuntime } from "../../time/runtime.js";
import type { Driver } from "../redis-client/client.js";
import { Membership } from "./membership.js";
import { Quorum } from "./quorum.js";
import { RedlockNode } from "./redlock-node.js";

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
