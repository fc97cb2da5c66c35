import { majorityOf } from "../../src/rules/majority.js";
import type { History } from "../history.js";
import { readRelease, readVote, type VoteArgs } from "./quorum-request.js";

interface Candidate {
  readonly name: string;
  readonly owner: string;
  readonly ballot: number;
  /** Until when the vote of each node lasts, in world time. */
  readonly votes: Map<number, number>;
}

/**
 * The grants of the quorum, from the requests and answers of each node: a grant is the votes of a
 * majority for one owner at one ballot, none of them given back or over.
 */
export class QuorumAccount {
  readonly #history: History;
  readonly #majority: number;
  readonly #candidates = new Map<string, Candidate>();
  /** By owner, the ballot of its grant: a late vote for a lower ballot makes no second grant. */
  readonly #granted = new Map<string, number>();

  /** By owner, the nodes that executed its release. */
  readonly #releasedAt = new Map<string, Set<number>>();

  constructor(history: History, nodes: number) {
    this.#history = history;
    this.#majority = majorityOf(nodes);
  }

  after(
    nowMs: number,
    node: number,
    name: string,
    [verb, ...args]: readonly string[],
    answer: unknown,
  ): void {
    const code = Array.isArray(answer) ? answer[0] : answer;
    if (verb === "vote" && (code === "G" || code === 1)) {
      const { owner, ballot, span, ttlMs } = readVote(args);
      const leftMs = Array.isArray(answer) ? Number(answer[1]) : ttlMs;
      this.#voted(nowMs, node, name, { owner, ballot, span }, leftMs);
    }
    if (verb === "renew" && code === "G") {
      const [, owner = ""] = args;
      this.#history.record(nowMs, { type: "vote renewed", node, name, owner });
    }
    if (verb !== "release") return;
    const released = readRelease(args).owner;
    this.#released(nowMs, node, name, released);
    for (const { owner, votes } of this.#candidates.values()) {
      if (owner === released) votes.delete(node);
    }
  }

  /** Records when a majority has executed a release, and each time that a node does so again. */
  #released(nowMs: number, node: number, name: string, owner: string): void {
    const nodes = this.#releasedAt.get(owner) ?? new Set();
    this.#releasedAt.set(owner, nodes);
    const isRepeated = nodes.has(node);
    if (!isRepeated && nodes.add(node).size !== this.#majority) return;
    this.#history.record(nowMs, { type: "withdrawn", name, owner, buriedMs: 0 });
  }

  #voted(
    nowMs: number,
    node: number,
    name: string,
    { owner, ballot, span }: Pick<VoteArgs, "owner" | "ballot" | "span">,
    leftMs: number,
  ): void {
    const key = `${owner} ${ballot}`;
    const fresh = { name, owner, ballot, votes: new Map<number, number>() };
    const candidate = this.#candidates.get(key) ?? fresh;
    this.#candidates.set(key, candidate);
    // A node has one vote for a name: this one ends the one before, which may have ended early.
    for (const other of this.#candidates.values()) {
      if (other.name === name && other !== candidate) other.votes.delete(node);
    }
    // Clocks run apart: a vote counts a little longer than it lasts.
    candidate.votes.set(node, nowMs + leftMs * 1.02);
    const standing = [...candidate.votes.values()].filter((untilMs) => untilMs > nowMs);
    if (standing.length < this.#majority || ballot <= (this.#granted.get(owner) ?? 0)) return;
    this.#granted.set(owner, ballot);
    this.#history.record(nowMs, {
      type: "granted",
      name,
      owner,
      client: owner,
      token: BigInt(ballot),
      span,
      isHandoff: false,
      remainingMs: leftMs,
      clockUs: 0,
    });
  }
}
