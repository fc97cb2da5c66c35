/**
 * The nodes of a quorum, and their faults: at any time fewer than half of the nodes have forgotten
 * data, or have a clock that jumped.
 */
import { present } from "../../src/errors/assert.js";
import { majorityOf } from "../../src/rules/majority.js";
import type { Chance } from "../chance.js";
import type { History } from "../history.js";
import type { StoreSide } from "../store-server.js";
import { QuorumAccount } from "./quorum-account.js";
import { QuorumNode } from "./quorum-node.js";
import { readRenewals } from "./quorum-request.js";

export interface FleetClock {
  nowMs(): number;
  /** How fast the clock of one more node runs. */
  rate(): number;
}

/** Gets the messages of a node to a channel. */
export type Listener = (message: string) => void;

export interface Member {
  readonly node: QuorumNode;
  readonly listeners: Map<string, Listener>;
  /** Called when the process of the node ends. */
  readonly onRestart: Set<() => void>;
}

export class NodeFleet implements StoreSide {
  readonly members: readonly Member[];
  setBackMs = 0;
  readonly #clock: FleetClock;
  readonly #history: History;
  readonly #chance: Chance;
  readonly #account: QuorumAccount;
  readonly #longestMs: number;
  /** World time until which a node may be wrong because its clock jumped. */
  readonly #wrongUntilMs = new Map<number, number>();

  constructor(
    size: number,
    longestMs: number,
    clock: FleetClock,
    history: History,
    chance: Chance,
  ) {
    this.#clock = clock;
    this.#history = history;
    this.#chance = chance;
    this.#longestMs = longestMs;
    this.#account = new QuorumAccount(history, size);
    this.members = Array.from({ length: size }, (_, at) => {
      const listeners = new Map<string, Listener>();
      const publish = (channel: string, message: string): boolean => {
        listeners.get(channel)?.(message);
        return listeners.has(channel);
      };
      const node = new QuorumNode(`n${at}`, clock.rate(), clock.nowMs, publish);
      return { node, listeners, onRestart: new Set() };
    });
  }

  get size(): number {
    return this.census().holders;
  }

  /** One call: a verb about one name, or the renewals of many leases. */
  execute(at: number, keys: readonly string[], args: readonly string[]): unknown {
    if (args[0] !== "renew") return this.#execute(at, keys[1] ?? "", args);
    return readRenewals(keys, args).map(({ name, verb }) => this.#execute(at, name, verb));
  }

  #execute(at: number, name: string, args: readonly string[]): unknown {
    const answer = this.members[at]?.node.execute(name, args);
    this.#account.after(this.#clock.nowMs(), at, name, args, answer);
    if (args[0] === "mark" || args[0] === "admit") this.#record(at, `${args.join(" ")}: ${answer}`);
    return answer;
  }

  initiate(maxTtlMs: number): void {
    const set = this.members.map(({ node }) => node.name).join(",");
    for (const { node } of this.members) node.initiate(set, maxTtlMs);
  }

  census(): { holders: number; waiters: number } {
    const holders = this.members.reduce((sum, { node }) => sum + node.owners.length, 0);
    return { holders, waiters: 0 };
  }

  step(byMs: number): void {
    const at = this.#pick();
    const node = at === null ? undefined : this.members[at]?.node;
    // A node that waits after a restart would wait for less than the leases that it has forgotten.
    if (at === null || !node?.isInformed) return;
    // A jump ahead ends the votes of this node, and a holder on a bare majority needs each of them.
    const { owners } = node;
    if (byMs > 0)
      this.#history.record(this.#clock.nowMs(), { type: "stepped", byMs, node: at, owners });
    // A clock that was set back is wrong for leases of before until it has caught up.
    const wrongMs = 3 * this.#longestMs + Math.max(0, -byMs);
    this.#wrongUntilMs.set(at, this.#clock.nowMs() + wrongMs);
    node.step(byMs);
    this.setBackMs += Math.max(0, -byMs);
    this.#record(at, `steps by ${byMs}`);
  }

  stall(forMs: number): void {
    const at = this.#chance.whole(0, this.members.length - 1);
    const { node } = present(this.members[at], "Chance picks a member.");
    node.busyUntilMs = this.#clock.nowMs() + forMs;
    this.#record(at, `stalls for ${forMs.toFixed(0)}`);
  }

  /** `isEmpty`: without the saved data. */
  restart(downMs: number, isEmpty: boolean): void {
    const at = this.#pick();
    const member = at === null ? undefined : this.members[at];
    if (at === null || !member) return;
    const { owners } = member.node;
    member.node.restart(downMs, isEmpty);
    member.listeners.clear();
    this.#record(at, isEmpty ? "restarts empty" : "restarts with what it saved", owners);
    for (const listener of [...member.onRestart]) listener();
  }

  /** A node may save its data at any time. */
  save(): void {
    this.#chance.pick(this.members).node.save();
  }

  /** A node that may fail, if any: the other nodes still make a majority that remembers. */
  #pick(): number | null {
    const nowMs = this.#clock.nowMs();
    const at = this.#chance.pick(this.#needed() ?? [...this.members.keys()]);
    const others = this.members.filter(({ node }, other) => {
      return other !== at && node.isInformed && (this.#wrongUntilMs.get(other) ?? 0) < nowMs;
    });
    return others.length >= majorityOf(this.members.length) ? at : null;
  }

  /** The nodes of a holder that needs each of them, its bare majority; null half of the time. */
  #needed(): number[] | null {
    if (this.#chance.isLucky(0.5)) return null;
    const nodes = new Map<string, number[]>();
    for (const [at, { node }] of this.members.entries()) {
      for (const owner of node.owners) nodes.set(owner, [...(nodes.get(owner) ?? []), at]);
    }
    const majority = majorityOf(this.members.length);
    return [...nodes.values()].find(({ length }) => length === majority) ?? null;
  }

  #record(at: number, what: string, owners: readonly string[] = []): void {
    this.#history.record(this.#clock.nowMs(), { type: "node", node: at, what, owners });
  }
}
