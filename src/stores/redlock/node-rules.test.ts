/** For how long a node keeps the record of a mark. */
import { describe, expect, it } from "vitest";
import { type NodeState, release, revoke, vote } from "./node-rules.js";

const DAY_MS = 86_400_000;
const START_US = 1_700_000_000_000_000;
const request = { set: "", span: 1, ttlMs: 30_000, channel: `holdfast@${"h".repeat(36)}` };
const daysOn = (days: number): number => START_US + days * DAY_MS * 1000;

/** A single server on which the owner `a` left a mark for thirty days. */
function marked(): NodeState {
  const node: NodeState = {
    run: "",
    startedMs: 0,
    marker: null,
    names: new Map(),
    singleServer: { startDelayMs: 0 },
  };
  vote(node, "job", START_US, { ...request, owner: "a", ballot: START_US });
  const mark = { owner: "a", ballot: START_US, keepMs: 30 * DAY_MS };
  expect(release(node, "job", START_US, mark)).toEqual({ type: "released" });
  return node;
}

/** Whether the record of the mark is there: it has the ballot of the mark, or a higher one. */
function hasRecord(node: NodeState, nowUs: number): boolean {
  const answer = vote(node, "job", nowUs, { ...request, owner: "b", ballot: nowUs });
  expect(answer.type).toBe("held");
  return node.names.get("job")?.ballot?.isOfMark === true;
}

describe("the record of a mark", () => {
  it("is kept for as long as the mark, and its token revokes the mark", () => {
    const node = marked();
    expect(hasRecord(node, daysOn(2))).toBe(true);
    expect(hasRecord(node, daysOn(29.9))).toBe(true);
    const terms = { token: START_US, reason: "why" };
    expect(revoke(node, "job", daysOn(29.9), terms)).toEqual({ type: "released" });
    expect(node.names.get("job")).toMatchObject({ lock: null, ballot: { revoked: {} } });
  });

  it("is not cut when another owner withdraws", () => {
    const node = marked();
    release(node, "job", daysOn(1), { owner: "b", ballot: daysOn(1) });
    expect(node.names.get("job")?.ballot?.stored).toBe(daysOn(1) + 1);
    expect(hasRecord(node, daysOn(29.9))).toBe(true);
  });

  it("ends with the next holder", () => {
    const node = marked();
    const next = { ...request, owner: "b", ballot: daysOn(30) };
    expect(vote(node, "job", daysOn(30), next)).toMatchObject({ type: "granted" });
    expect(node.names.get("job")?.ballot).toEqual({
      stored: daysOn(30),
      untilUs: expect.any(Number),
    });
    expect(node.names.get("job")?.ballot?.untilUs).toBeLessThan(daysOn(32));
  });
});
