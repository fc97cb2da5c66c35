import { describe, expect, it } from "vitest";
import { voteArgs } from "../../src/stores/redlock/protocol.js";
import { History } from "../history.js";
import { QuorumAccount } from "./quorum-account.js";

/** An account of three nodes, which all grant what they are asked for. */
function threeNodes() {
  const history = new History();
  const account = new QuorumAccount(history, 3);
  return {
    votes(atMs: number, node: number, owner: string, ballot: number, ttlMs = 1_000): void {
      const claim = { owner, ttlMs, span: 1 };
      const round = { claim, ballot, channel: "c", metaText: "{}", waiter: null } as const;
      const args = voteArgs({ ...round, setId: "0".repeat(16), maxTtlMs: ttlMs });
      account.after(atMs, node, "a", args, 1);
    },
    granted: () => {
      return history.entries().flatMap((entry) => (entry.type === "granted" ? [entry.owner] : []));
    },
  };
}

describe("a grant of the quorum", () => {
  it("is the votes of a majority, and is counted once", () => {
    const { votes, granted } = threeNodes();
    votes(0, 0, "p", 64);
    expect(granted()).toEqual([]);
    votes(1, 1, "p", 64);
    votes(2, 2, "p", 64);
    expect(granted()).toEqual(["p"]);
  });

  it("has no vote that is over", () => {
    const { votes, granted } = threeNodes();
    votes(0, 0, "p", 64);
    votes(1_100, 1, "p", 64);
    expect(granted()).toEqual([]);
  });

  it("has no vote of a node that voted for another owner since then", () => {
    const { votes, granted } = threeNodes();
    votes(0, 0, "p", 64);
    // The clock of the node jumped: its vote for the first owner has ended early.
    votes(100, 0, "q", 128);
    votes(101, 1, "q", 128);
    votes(500, 2, "p", 64);
    expect(granted()).toEqual(["q"]);
  });
});
