/**
 * The link from a simulated process to the nodes of a quorum: the real store over drivers whose
 * requests and replies are late, lost or repeated, and whose connections break.
 */

import type { Store } from "../../src/contract/store.js";
import { present } from "../../src/errors/assert.js";
import { majorityOf } from "../../src/rules/majority.js";
import type { Driver, OwnConnection } from "../../src/stores/redis-client/client.js";
import { RedlockNode } from "../../src/stores/redlock/quorum.js";
import { RedlockStore } from "../../src/stores/redlock/redlock-store.js";
import { readNodeCall } from "../../test/fixtures/node-call.js";
import { Connection, type Network } from "../connection.js";
import type { Link } from "../link.js";
import type { SimulatedProcess } from "../process.js";
import { delayOf } from "../weather.js";
import type { Member, NodeFleet } from "./node-fleet.js";
import { readRenewals } from "./quorum-request.js";

export const NODE_TIMEOUT_MS = 50;

export interface QuorumOptions {
  readonly maxTtlMs: number;
  readonly announceMs: number;
}

export class QuorumLink implements Link {
  readonly isLocal = false;
  readonly #process: SimulatedProcess;
  readonly #network: Network;
  readonly #options: QuorumOptions;
  readonly #drivers: readonly SimulatedDriver[];

  constructor(
    process: SimulatedProcess,
    fleet: NodeFleet,
    network: Network,
    options: QuorumOptions,
  ) {
    this.#process = process;
    this.#network = network;
    this.#options = options;
    const ends = new LostMajorities(process, fleet.members.length);
    this.#drivers = fleet.members.map(
      (_, at) => new SimulatedDriver(at, process, fleet, network, ends),
    );
  }

  get callsUnderWay(): number {
    return this.#drivers.reduce((sum, { callsUnderWay }) => sum + callsUnderWay, 0);
  }

  openStore(): Store {
    const nodes = this.#drivers.map((driver) => new RedlockNode(driver.name, driver));
    const rules = {
      namespace: "",
      nodeTimeoutMs: NODE_TIMEOUT_MS,
      driftFactor: 0.01,
      ...this.#options,
    } as const;
    return new RedlockStore(nodes, { ...rules, bootstrap: "wait" }, this.#process.runtime);
  }

  abandon(noticedMs: number | null): void {
    for (const driver of this.#drivers) driver.abandon(noticedMs);
  }

  cut(forMs: number): void {
    // Either the process is cut off from all nodes, or from one node.
    if (this.#network.chance.isLucky(0.3)) for (const driver of this.#drivers) driver.cut(forMs);
    else this.#any().cut(forMs);
  }

  /** Leaves a bare majority of the nodes within reach. */
  cutOff(forMs: number): void {
    this.#leave(majorityOf(this.#drivers.length), forMs);
  }

  isolate(): void {
    this.#leave(1, 1);
  }

  #leave(count: number, forMs: number): void {
    const first = this.#drivers.indexOf(this.#any());
    const rest = [...this.#drivers.slice(first), ...this.#drivers.slice(0, first)].slice(count);
    for (const driver of rest) driver.cut(forMs);
  }

  reset(): void {
    this.#any().reset();
  }

  resetNext(): void {
    this.#any().resetNext();
  }

  #any(): SimulatedDriver {
    return this.#network.chance.pick(this.#drivers);
  }
}

/** Notes when the nodes have told a process, in one poll, that a grant has no majority any more. */
class LostMajorities {
  readonly #process: SimulatedProcess;
  readonly #majority: number;
  readonly #nodes: number;
  /** By poll and owner, the nodes that do not keep the grant. */
  readonly #lostAt = new Map<string, Set<number>>();

  constructor(process: SimulatedProcess, nodes: number) {
    this.#process = process;
    this.#nodes = nodes;
    this.#majority = majorityOf(nodes);
  }

  onReply(node: number, { keys, args, sentMs }: Call, raw: unknown): void {
    // Later answers may come after the end of their poll: those tell nothing.
    const isInTime = this.#process.runtime.clock.nowMs() - sentMs < NODE_TIMEOUT_MS;
    if (args[0] !== "renew" || !Array.isArray(raw) || !isInTime) return;
    for (const [at, { name, verb }] of readRenewals(keys, args).entries()) {
      const [, , owner = "", token = ""] = verb;
      if (!["N", "V", "H"].includes(raw[at]?.[0])) continue;
      const poll = `${sentMs} ${owner}`;
      const nodes = this.#lostAt.get(poll) ?? new Set();
      this.#lostAt.set(poll, nodes.add(node));
      if (nodes.size <= this.#nodes - this.#majority) continue;
      this.#process.learn({ name, token: BigInt(token) });
    }
  }
}

interface Call {
  readonly sentMs: number;
  readonly keys: readonly string[];
  readonly args: readonly string[];
  readonly resolve: (raw: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** The way from one process to one node. */
class SimulatedDriver implements Driver {
  readonly isCluster = false;
  readonly hasOneConnection = true;
  readonly database = 0;
  readonly address = null;
  readonly keyPrefix = "";
  readonly servers = (): never[] => [];
  readonly masters = async (): Promise<never[]> => [];
  readonly name: string;
  readonly #at: number;
  readonly #process: SimulatedProcess;
  readonly #fleet: NodeFleet;
  readonly #member: Member;
  readonly #network: Network;
  readonly #connection: Connection;
  readonly #ends: LostMajorities;
  readonly #calls = new Set<Call>();
  readonly #onClose = new Set<() => void>();
  #channel = "";

  constructor(
    at: number,
    process: SimulatedProcess,
    fleet: NodeFleet,
    network: Network,
    ends: LostMajorities,
  ) {
    this.#ends = ends;
    const member = present(fleet.members[at], "Every node of the fleet has a driver.");
    const server = member.node;
    this.name = server.name;
    this.#at = at;
    this.#process = process;
    this.#fleet = fleet;
    this.#member = member;
    this.#network = network;
    this.#connection = new Connection(process, network, { server, onBreak: () => this.reset() });
    member.onRestart.add(() => this.reset());
  }

  get callsUnderWay(): number {
    return this.#calls.size;
  }

  changes(): number {
    return this.#connection.number;
  }

  send(_key: string, _command: string, line: readonly string[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const sentMs = this.#process.runtime.clock.nowMs();
      const call = { sentMs, ...readNodeCall(line), resolve, reject };
      this.#calls.add(call);
      this.#send(call);
    });
  }

  async open(): Promise<OwnConnection> {
    await this.#process.sleep(this.#connection.delayMs());
    const { node } = this.#member;
    if (node.isDown || this.#connection.isCut) throw new Error("The connection was refused.");
    const closing = new Set<() => void>();
    const close = (): void => {
      this.#member.listeners.delete(this.#channel);
      this.#onClose.delete(close);
      for (const listener of closing) listener();
      closing.clear();
    };
    this.#onClose.add(close);
    return {
      send: async () => "PONG",
      subscribe: async (channel, onMessage) => {
        this.#channel = channel;
        this.#member.listeners.set(channel, (message) => this.#deliver(message, onMessage));
      },
      onClose: (listener) => closing.add(listener),
      close,
    };
  }

  abandon(noticedMs: number | null): void {
    this.#connection.abandon();
    if (noticedMs === null) return;
    const { world } = this.#network;
    world.schedule(world.nowMs + noticedMs, null, () => {
      this.#member.listeners.delete(this.#channel);
    });
  }

  cut(forMs: number): void {
    this.#connection.cut(forMs);
  }

  resetNext(): void {
    this.#connection.breakNext();
  }

  reset(): void {
    const { world } = this.#network;
    this.#connection.replace(
      this.#calls,
      (call) => this.#send(call),
      (call) => this.#fail(call),
    );
    world.schedule(world.nowMs, this.#process, () => {
      for (const close of [...this.#onClose]) close();
    });
  }

  #send(call: Call): void {
    this.#connection.send({
      execute: () => {
        const raw = this.#fleet.execute(this.#at, call.keys, call.args);
        return () => {
          if (!this.#calls.delete(call)) return;
          this.#ends.onReply(this.#at, call, raw);
          call.resolve(raw);
        };
      },
      onRefused: () => this.#fail(call),
    });
  }

  #fail(call: Call): void {
    if (this.#calls.delete(call)) call.reject(new Error("The connection broke."));
  }

  #deliver(message: string, onMessage: (message: string) => void): void {
    const { world, chance, weather } = this.#network;
    if (chance.isLucky(weather().loss) || this.#connection.isCut) return;
    const delayMs = delayOf(weather(), chance, weather().slowPush);
    world.schedule(world.nowMs + delayMs, this.#process, () => onMessage(message));
  }
}
