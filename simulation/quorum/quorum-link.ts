/**
 * The way from a simulated process to the nodes of a quorum: the real store over drivers whose
 * requests and answers are late, lost, repeated, and whose connections break.
 */
import type { Store } from "../../src/store.js";
import type { Driver, OwnConnection } from "../../src/stores/redis-client/driver.js";
import { RedlockNode } from "../../src/stores/redlock/redlock-node.js";
import { RedlockStore } from "../../src/stores/redlock/redlock-store.js";
import type { Chance } from "../chance.js";
import type { Way } from "../link.js";
import type { SimulatedProcess } from "../process.js";
import { delayOf, type Weather } from "../weather.js";
import type { World } from "../world.js";
import type { NodeFleet } from "./node-fleet.js";

export const NODE_TIMEOUT_MS = 50;

export interface Surroundings {
  readonly world: World;
  readonly fleet: NodeFleet;
  readonly chance: Chance;
  readonly maxTtlMs: number;
  /** May be so short that longer leases are announced again and again, and forgotten between. */
  readonly announceMs: number;
  weather(): Weather;
}

export class QuorumLink implements Way {
  readonly isLocal = false;
  readonly #process: SimulatedProcess;
  readonly #around: Surroundings;
  readonly #drivers: readonly SimulatedDriver[];

  constructor(process: SimulatedProcess, around: Surroundings) {
    this.#process = process;
    this.#around = around;
    this.#drivers = around.fleet.members.map((_, at) => new SimulatedDriver(at, process, around));
  }

  get callsUnderWay(): number {
    return this.#drivers.reduce((sum, { callsUnderWay }) => sum + callsUnderWay, 0);
  }

  openStore(): Store {
    const { fleet, maxTtlMs, announceMs } = this.#around;
    const nodes = this.#drivers.map((driver, at) => {
      return new RedlockNode(fleet.members[at]?.node.name ?? "", driver);
    });
    const rules = {
      namespace: "",
      nodeTimeoutMs: NODE_TIMEOUT_MS,
      driftFactor: 0.01,
      maxTtlMs,
      announceMs,
    } as const;
    return new RedlockStore(nodes, { ...rules, bootstrap: "wait" }, this.#process.port);
  }

  abandon(noticedMs: number | null): void {
    for (const driver of this.#drivers) driver.abandon(noticedMs);
  }

  cut(forMs: number): void {
    // Sometimes it is the process that is cut off, sometimes one node from it.
    if (this.#around.chance.isLucky(0.3)) for (const driver of this.#drivers) driver.cut(forMs);
    else this.#any().cut(forMs);
  }

  reset(): void {
    this.#any().reset();
  }

  resetNext(): void {
    this.#any().resetNext();
  }

  #any(): SimulatedDriver {
    return this.#around.chance.pick(this.#drivers);
  }
}

interface Call {
  readonly name: string;
  readonly args: readonly string[];
  readonly resolve: (raw: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** One node as one process reaches it. */
class SimulatedDriver implements Driver {
  readonly isCluster = false;
  readonly hasOneConnection = true;
  readonly database = 0;
  readonly address = null;
  readonly keyPrefix = "";
  readonly servers = (): never[] => [];
  readonly #at: number;
  readonly #process: SimulatedProcess;
  readonly #around: Surroundings;
  readonly #calls = new Set<Call>();
  readonly #onClose = new Set<() => void>();
  #connection = 0;
  #lastRequestMs = 0;
  #lastAnswerMs = 0;
  #cutUntilMs = 0;
  #breaksNext = false;
  #channel = "";

  constructor(at: number, process: SimulatedProcess, around: Surroundings) {
    this.#at = at;
    this.#process = process;
    this.#around = around;
    around.fleet.members[at]?.onRestart.add(() => this.reset());
  }

  get callsUnderWay(): number {
    return this.#calls.size;
  }

  changes(): number {
    return this.#connection;
  }

  send(_key: string, _command: string, [, count, ...rest]: readonly string[]): Promise<unknown> {
    const [, name = ""] = rest;
    return new Promise((resolve, reject) => {
      const call = { name, args: rest.slice(Number(count)), resolve, reject };
      this.#calls.add(call);
      this.#transmit(call, this.#process.nowMs);
    });
  }

  async open(): Promise<OwnConnection> {
    await this.#process.sleep(this.#delay());
    const { node } = this.#member;
    if (node.isDown || this.#isCut) throw new Error("The connection was refused.");
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
    this.#connection += 1;
    if (noticedMs === null) return;
    const { world } = this.#around;
    world.schedule(world.nowMs + noticedMs, null, () => {
      this.#member.listeners.delete(this.#channel);
    });
  }

  cut(forMs: number): void {
    this.#cutUntilMs = this.#around.world.nowMs + forMs;
  }

  resetNext(): void {
    this.#breaksNext = true;
  }

  /** What was under way is sent again, or fails; what was sent before may still arrive. */
  reset(): void {
    const { world, chance } = this.#around;
    this.#connection += 1;
    this.#lastRequestMs = 0;
    this.#lastAnswerMs = 0;
    const resends = chance.isLucky(0.5);
    for (const call of this.#calls) {
      world.schedule(world.nowMs + chance.between(0, 20), this.#process, () => {
        if (!this.#calls.has(call)) return;
        if (resends) return this.#transmit(call, this.#process.nowMs);
        this.#fail(call);
      });
    }
    world.schedule(world.nowMs, this.#process, () => {
      for (const close of [...this.#onClose]) close();
    });
  }

  get #member() {
    return this.#around.fleet.members[this.#at] as NodeFleet["members"][number];
  }

  get #isCut(): boolean {
    return this.#around.world.nowMs < this.#cutUntilMs;
  }

  #delay(): number {
    return delayOf(this.#around.weather(), this.#around.chance);
  }

  #transmit(call: Call, fromMs: number): void {
    const { world, chance, weather } = this.#around;
    const { loss, copies, ordered, lateMs } = weather();
    const connection = this.#connection;
    let arrivalMs = fromMs + this.#delay();
    if (ordered) {
      arrivalMs = Math.max(arrivalMs, this.#lastRequestMs);
      this.#lastRequestMs = arrivalMs;
    }
    if (this.#breaksNext) {
      this.#breaksNext = false;
      world.schedule(chance.between(fromMs, arrivalMs), null, () => this.reset());
    }
    const arrive = (): void => this.#arrive(call, connection);
    if (!chance.isLucky(loss) && !this.#isCut) world.schedule(arrivalMs, null, arrive);
    if (chance.isLucky(copies)) world.schedule(arrivalMs + chance.spread(...lateMs), null, arrive);
  }

  #arrive(call: Call, connection: number, isLate = false): void {
    const { world, chance, fleet, weather } = this.#around;
    const again = (): void => this.#arrive(call, connection, true);
    const { node } = this.#member;
    if (node.isDown || this.#isCut) {
      if (node.isDown && chance.isLucky(0.7)) {
        world.schedule(world.nowMs + this.#delay(), this.#process, () => this.#fail(call));
      }
      return;
    }
    if (node.busyUntilMs > world.nowMs) return void world.schedule(node.busyUntilMs, null, again);
    if (connection !== this.#connection && !isLate) {
      const fate = chance.weigh({ lost: 4, intime: 2, late: 4 });
      if (fate === "lost") return;
      if (fate === "late") {
        return void world.schedule(world.nowMs + chance.spread(...weather().lateMs), null, again);
      }
    }
    const raw = fleet.execute(this.#at, call.name, call.args);
    if (connection !== this.#connection || chance.isLucky(weather().loss)) return;
    let answerMs = world.nowMs + this.#delay();
    if (weather().ordered) {
      answerMs = Math.max(answerMs, this.#lastAnswerMs);
      this.#lastAnswerMs = answerMs;
    }
    world.schedule(answerMs, this.#process, () => {
      if (connection === this.#connection && this.#calls.delete(call)) call.resolve(raw);
    });
  }

  #fail(call: Call): void {
    if (this.#calls.delete(call)) call.reject(new Error("The connection broke."));
  }

  #deliver(message: string, onMessage: (message: string) => void): void {
    const { world, chance, weather } = this.#around;
    if (chance.isLucky(weather().loss) || this.#isCut) return;
    const delayMs = delayOf(weather(), chance, weather().slowPush);
    world.schedule(world.nowMs + delayMs, this.#process, () => onMessage(message));
  }
}
