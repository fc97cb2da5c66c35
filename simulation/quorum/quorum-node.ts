/**
 * One node of a quorum: the rules of a node in TypeScript behind a clock of its own. It answers as
 * the script does, in a process that stops, restarts, forgets, or comes back with its saved data.
 */

import {
  instruct,
  type NodeState,
  raise,
  release,
  renew,
  revoke,
  vote,
} from "../../src/stores/redlock/node-rules.js";
import type { NotVoting } from "../../src/stores/redlock/protocol.js";
import { setIdOf } from "../../src/stores/redlock/quorum.js";
import { readRelease, readVote } from "./quorum-request.js";

const WALL_US = 1_700_000_000_000_000;
const NOT_VOTING = {
  unmarked: "U",
  young: "Q",
  unfloored: "F",
  short: "T",
  other_set: "S",
} as const;

/** Sends a message to the listener of a channel; false when there is none. */
export type Publish = (channel: string, message: string) => boolean;

export class QuorumNode {
  readonly name: string;
  readonly #nowMs: () => number;
  readonly #rate: number;
  readonly #publish: Publish;
  /** By name, the waiters in the order in which they came. */
  readonly #waiters = new Map<string, Set<string>>();
  #state: NodeState;
  #saved: NodeState | null = null;
  #runs = 0;
  #steppedMs = 0;
  #downUntilMs = 0;
  busyUntilMs = 0;

  constructor(name: string, rate: number, nowMs: () => number, publish: Publish) {
    this.name = name;
    this.#rate = rate;
    this.#nowMs = nowMs;
    this.#publish = publish;
    this.#state = this.#born({ marker: null, names: new Map() });
  }

  get isDown(): boolean {
    return this.#nowMs() < this.#downUntilMs;
  }

  /** The node votes: it remembers everything, or has learned what it forgot. */
  get isInformed(): boolean {
    const { marker, run } = this.#state;
    return marker?.run === run && marker.floor !== null;
  }

  /** The owners of locks that have not expired. */
  get owners(): string[] {
    const nowMs = this.#nowUs() / 1000;
    return [...this.#state.names.values()].flatMap(({ lock }) => {
      return lock && lock.untilMs > nowMs ? [lock.owner] : [];
    });
  }

  /** As if a client had admitted the node long ago. */
  initiate(set: string, maxTtlMs: number): void {
    const { run } = this.#state;
    const long = { longTtlMs: 0, longUntilMs: 0 };
    this.#state.marker = { run, set, fromMs: 0, maxTtlMs, ...long, floor: 0, top: 0 };
  }

  save(): void {
    this.#saved = structuredClone(this.#state);
  }

  step(byMs: number): void {
    this.#steppedMs += byMs;
  }

  restart(downMs: number, isEmpty: boolean): void {
    this.#downUntilMs = this.#nowMs() + downMs;
    this.#waiters.clear();
    const kept = this.#saved && !isEmpty ? structuredClone(this.#saved) : null;
    this.#state = this.#born(kept ?? { marker: null, names: new Map() });
  }

  /** One verb of the script, as its answer comes over the wire. */
  execute(name: string, [verb, ...args]: readonly string[]): unknown {
    const nowUs = this.#nowUs();
    const node = this.#state;
    const [first = "", second = "", third = "", fourth = "", fifth = "", sixth = ""] = args;
    switch (verb) {
      case "vote":
        return this.#vote(name, nowUs, args);
      case "renew": {
        const [set, owner] = [this.#setOf(first), second];
        const [ballot, span, ttlMs] = [Number(third), Number(fourth), Number(fifth)];
        const request = { set, owner, ballot, span, ttlMs, channel: sixth };
        const renewal = renew(node, name, nowUs, request);
        if (renewal.type === "granted") {
          return ["G", renewal.remainingMs, renewal.isRetaken ? 1 : 0];
        }
        if (renewal.type === "not_voting") return notVotingReply(renewal);
        if (renewal.type === "revoked") return ["V", renewal.reason];
        return [renewal.type === "replaced" ? "H" : "N"];
      }
      case "release": {
        const { waiter, ...request } = readRelease(args);
        if (waiter !== "") this.#queue(name).add(waiter);
        const { type } = release(node, name, nowUs, request);
        if (type === "released") this.#wake(name);
        return codeOf(type);
      }
      case "revoke":
        return codeOf(revoke(node, name, nowUs, { token: Number(first), reason: second }).type);
      case "wait":
        this.#queue(name).add(first);
        return this.#lookReply(name, nowUs);
      case "leave":
        this.#queue(name).delete(first);
        return 1;
      case "look":
        return this.#stored(name, nowUs);
      case "survey": {
        const { run, startedMs, marker } = node;
        const uptime = Math.floor((nowUs / 1000 - startedMs) / 1000);
        if (!marker) return [run, `${uptime}`, `${nowUs}`];
        const { set, fromMs, maxTtlMs, floor, top, longTtlMs, longUntilMs } = marker;
        const told = [marker.run, set, fromMs, maxTtlMs, floor, top, longTtlMs, longUntilMs].map(
          (one) => `${one ?? ""}`,
        );
        return [run, `${uptime}`, `${nowUs}`, ...told];
      }
      case "mark": {
        const how = third as "join" | "boot" | "now";
        const [maxTtlMs, restMs] = [Number(fourth), Number(fifth)];
        const floor = sixth === "" ? null : Number(sixth);
        const told = { type: "mark", run: first, how, maxTtlMs, restMs, floor } as const;
        return instruct(node, nowUs, second, told) ? 1 : 0;
      }
      case "admit": {
        const told = { type: "admit", run: first, floor: Number(second) } as const;
        return instruct(node, nowUs, node.marker?.set ?? "", told) ? 1 : 0;
      }
      case "raise":
        return raise(node, nowUs, first, { ttlMs: Number(second), forMs: Number(third) }) ? 1 : 0;
      default:
        throw new Error(`A node has no verb ${verb}.`);
    }
  }

  #vote(name: string, nowUs: number, args: readonly string[]): unknown {
    const { waiter, setId, ...asked } = readVote(args);
    const { ttlMs } = asked;
    const request = { ...asked, set: this.#setOf(setId) };
    const answer = vote(this.#state, name, nowUs, request);
    switch (answer.type) {
      case "granted":
        this.#queue(name).delete(waiter);
        return answer.remainingMs === ttlMs ? 1 : ["G", answer.remainingMs];
      case "held":
        if (waiter !== "") this.#queue(name).add(waiter);
        return this.#lookReply(name, nowUs);
      case "too_low":
        return ["L", `${answer.stored}`];
      case "not_voting":
        return notVotingReply(answer);
      default:
        return ["A", `${nowUs}`];
    }
  }

  /** The set of the node, if this is its id. */
  #setOf(setId: string): string {
    const { set = "" } = this.#state.marker ?? {};
    return setIdOf(set) === setId ? set : setId;
  }

  #lookReply(name: string, nowUs: number): unknown {
    const [pttl, value, text] = this.#stored(name, nowUs);
    const stored = text.split(" ")[0] || "0";
    return value === "" ? ["O", stored, 0] : ["H", stored, pttl, value, text, 0];
  }

  #stored(name: string, nowUs: number): [number, string, string, []] {
    const { lock, ballot } = this.#state.names.get(name) ?? { lock: null, ballot: null };
    const leftMs = (lock?.untilMs ?? 0) - Math.floor(nowUs / 1000);
    if (!lock || leftMs <= 0) return [-2, "", `${ballot?.stored ?? 0}`, []];
    const { owner, token, span, untilMs, channel } = lock;
    const record = `${owner} ${token} ${span} ${untilMs} ${channel ?? "-"} {}`;
    const text = `${ballot?.stored ?? 0} H ${record}`;
    return [leftMs, owner, text, []];
  }

  #queue(name: string): Set<string> {
    const queue = this.#waiters.get(name) ?? new Set();
    this.#waiters.set(name, queue);
    return queue;
  }

  /** Wakes the first waiter that can be reached. */
  #wake(name: string): void {
    const queue = this.#queue(name);
    for (const waiter of queue) {
      const [channel = "", id = ""] = waiter.split("/");
      if (this.#publish(channel, `w ${id}`)) return;
      queue.delete(waiter);
    }
  }

  #born(kept: Pick<NodeState, "marker" | "names">): NodeState {
    this.#runs += 1;
    const { marker, names } = kept;
    const startedMs = Math.floor(this.#nowUs() / 1000);
    return { run: `${this.name}.${this.#runs}`, startedMs, marker, names };
  }

  #nowUs(): number {
    return WALL_US + Math.floor((this.#nowMs() * this.#rate + this.#steppedMs) * 1000);
  }
}

function notVotingReply(answer: NotVoting): unknown {
  const code = NOT_VOTING[answer.why];
  if (answer.why === "young") return [code, `${answer.waitMs}`];
  if (answer.why === "short") return [code, `${answer.maxTtlMs}`];
  return answer.why === "other_set" ? [code, answer.set] : [code];
}

function codeOf(type: string): number {
  return type === "released" ? 1 : type === "absent" ? 0 : -1;
}
