import { describe, expect, it } from "vitest";
import { QuorumError } from "../../errors/index.js";
import type { Driver } from "../redis-client/client.js";
import { failedVote, nodeError, quorumError } from "./errors.js";
import { RedlockNode } from "./quorum.js";

/** A node whose client answers every command in the same way. */
function node(name: string, send: Driver["send"]): RedlockNode {
  return new RedlockNode(name, { send } as Driver);
}

const refuse = (text: string) => async (): Promise<never> => Promise.reject(new Error(text));

/** The server does not know the script, nor the commands that it uses. */
const tooOld: Driver["send"] = async (_key, command) => {
  if (command === "eval") return "6.0.16";
  throw new Error("NOSCRIPT No matching script.");
};

describe("an error of one node", () => {
  it.each([
    ["a server that refuses", refuse("OOM command not allowed"), "Node a:1: Redis refused: "],
    ["a server of a Cluster", refuse("MOVED 1 h:2"), "Node a:1: This server is part of a Cluster"],
    ["a server that is too old", tooOld, "Node a:1: This server is Redis 6.0.16: "],
    ["a connection that ends", refuse("Connection is closed."), "Node a:1: Redis failed: "],
  ])("names the store and the node: %s", async (_title, send, message) => {
    await expect(node("a:1", send).ask(["k"], ["look"])).rejects.toMatchObject({
      store: "redlock",
      code: "HF_STORE",
      message: expect.stringContaining(message),
    });
  });

  it("is told once by an error about all nodes", async () => {
    const nodes = ["a:1", "b:2"].map((name) => node(name, refuse("LOADING data")));
    const answers = await Promise.all(
      nodes.map((one) => one.ask([], []).catch((error) => ({ type: "error", error }) as const)),
    );
    const error = quorumError(nodes, answers as Parameters<typeof quorumError>[1]);
    expect(error).toBeInstanceOf(QuorumError);
    expect(error.message).toContain("(a:1: Redis refused: Redis is still loading its data");
    expect(error.cause).toMatchObject({ store: "redlock" });
    expect(String(error.cause)).toContain("Node a:1: Redis refused");
  });

  it("keeps what is known of the failure", () => {
    const cause = new Error("NOAUTH Authentication required.");
    const error = nodeError("a:1", cause);
    expect(error).toMatchObject({ outcome: "not_applied", retryable: false, cause });
    expect(failedVote("a:1", error).detail).toMatch(/^Redis refused: check the client's user name/);
  });
});
