import { describe, expect, it } from "vitest";
import { type NodeState, redlockChecks, redlockFailureCases } from "./doctor.js";

const terms = {
  set: "a,b,c",
  nodeTimeoutMs: 50,
  maxTtlMs: 30_000,
  isSingleServer: false,
  startDelayMs: 0,
};

const node = (name: string, slowestMs: number, more: Partial<NodeState> = {}): NodeState => ({
  name,
  host: name,
  info: new Map(),
  skewMs: 0,
  roundTrip: { slowestMs, count: 25 },
  survey: null,
  ...more,
});

function judge(id: string, nodes: readonly NodeState[], ttlMs = 30_000): string | undefined {
  const facts = { nodes: { value: nodes }, terms: { value: terms } };
  return redlockChecks.find((one) => one.id === id)?.judge(facts, ttlMs)?.severity;
}

describe("Redlock", () => {
  it("judges the time of its nodes by the time that they have", () => {
    const nodes = (...times: number[]) => times.map((timeMs, at) => node(`n${at}`, timeMs));
    expect(judge("redlock/node-timeout", nodes(1, 1, 1))).toBe("ok");
    expect(judge("redlock/node-timeout", nodes(1, 1, 80))).toBe("note");
    expect(judge("redlock/node-timeout", nodes(1, 80, 80))).toBe("warning");
    expect(judge("redlock/node-timeout", nodes(30, 30, 30), 100)).toBe("warning");
  });

  it("finds nodes that do not run its script", () => {
    expect(judge("redlock/markers", [node("a", 1)])).toBe("warning");
  });

  it("says how many nodes may still fail", () => {
    const nodes = [node("a", 1), node("b", 1), node("c", 1, { info: null })];
    const [, , fails] = redlockFailureCases({ nodes, terms }, 30_000);
    expect(fails?.outcome).toContain("No majority is left");
    const [, , , , loss] = redlockFailureCases({ nodes, terms }, 60_000);
    expect(loss?.isSafe).toBe(false);
  });
});
