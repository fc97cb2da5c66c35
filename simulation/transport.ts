/**
 * The way from a simulated process to the store: requests, replies and pushes are late, lost,
 * repeated or overtaken, connections break, and a copy of a request may turn up long after its
 * connection is gone.
 */
import { StoreError } from "../src/errors.js";
import type { Command, Push, View } from "../src/rules/ledger-command.js";
import type { Store, Traits } from "../src/store.js";
import type { Execution } from "../src/stores/arbiter/arbiter.js";
import type { Port } from "../src/time/port.js";
import type { Chance } from "./chance.js";
import { type Link, storeOver, TRAITS } from "./link.js";
import type { SimulatedProcess } from "./process.js";
import type { StoreServer } from "./store-server.js";
import { delayOf, type Weather } from "./weather.js";
import type { World } from "./world.js";

interface Call {
  readonly commands: readonly Command[];
  readonly resolve: (execution: Execution) => void;
  readonly reject: (error: StoreError) => void;
  isResent: boolean;
}

export interface Surroundings {
  readonly world: World;
  readonly server: StoreServer;
  readonly chance: Chance;
  /** What the network is like at this moment. */
  weather(): Weather;
}

export class SimulatedLink implements Link {
  readonly name = "simulated";
  readonly traits: Traits = TRAITS;
  readonly isLocal = false;
  readonly believesPushes: boolean;
  readonly port: Port;
  readonly #process: SimulatedProcess;
  readonly #around: Surroundings;
  readonly #calls = new Set<Call>();
  /** Counts connections: what belongs to an older one has lost its way back. */
  #connection = 0;
  #lastRequestMs = 0;
  #lastReplyMs = 0;
  #cutUntilMs = 0;
  #isClosed = false;
  #breaksNext = false;
  #client = "";
  #onPush: (push: Push) => void = () => {};
  #onReset: () => void = () => {};

  constructor(process: SimulatedProcess, believesPushes: boolean, around: Surroundings) {
    this.port = process.port;
    this.believesPushes = believesPushes;
    this.#process = process;
    this.#around = around;
    around.server.onRestart(() => this.reset());
  }

  get callsUnderWay(): number {
    return this.#calls.size;
  }

  openStore(offerMs: number | undefined): Store {
    return storeOver(this, offerMs);
  }

  shardOf(): string {
    return "";
  }

  execute(_shard: string, commands: readonly Command[]): Promise<Execution> {
    return new Promise((resolve, reject) => {
      const call = { commands, resolve, reject, isResent: false };
      this.#calls.add(call);
      this.#transmit(call, this.#process.nowMs);
    });
  }

  list(): AsyncIterable<{ key: string; view: View }> {
    throw new Error("Nothing in the simulation lists a store.");
  }

  listen(client: string, onPush: (push: Push) => void, onReset: () => void): void {
    this.#client = client;
    this.#onPush = onPush;
    this.#onReset = onReset;
    this.#subscribe(this.#process.nowMs);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#around.server.unsubscribe(this.#client);
    for (const call of this.#calls) this.#fail(call, "unknown");
  }

  /** The process is gone; the store may take a while to notice, or never does. */
  abandon(noticedMs: number | null): void {
    this.#isClosed = true;
    this.#connection += 1;
    if (noticedMs === null) return;
    const { world, server } = this.#around;
    world.schedule(world.nowMs + noticedMs, null, () => server.unsubscribe(this.#client));
  }

  /** Nothing gets through for a while, and nobody is told. */
  cut(forMs: number): void {
    this.#cutUntilMs = this.#around.world.nowMs + forMs;
  }

  /** The connections break as soon as something is under way on them. */
  resetNext(): void {
    this.#breaksNext = true;
  }

  /** The connections break: what was under way is sent again, or its outcome stays unknown. */
  reset(): void {
    if (this.#isClosed) return;
    const { world, chance, server } = this.#around;
    this.#connection += 1;
    this.#lastRequestMs = 0;
    this.#lastReplyMs = 0;
    const resends = chance.isLucky(0.5);
    for (const call of this.#calls) {
      world.schedule(world.nowMs + chance.between(0, 20), this.#process, () => {
        if (!this.#calls.has(call)) return;
        if (!resends) return this.#fail(call, "unknown");
        call.isResent = true;
        this.#transmit(call, this.#process.nowMs);
      });
    }
    if (this.#client === "") return;
    server.unsubscribe(this.#client);
    this.#subscribe(world.nowMs);
  }

  #subscribe(fromMs: number): void {
    const { world, server } = this.#around;
    const connection = this.#connection;
    world.schedule(fromMs + this.#delay(), null, () => {
      if (this.#isClosed || connection !== this.#connection) return;
      if (server.isDown || this.#isCut()) return this.#subscribe(world.nowMs + 50);
      server.subscribe(this.#client, (push) => this.#deliver(push));
      world.schedule(world.nowMs + this.#delay(), this.#process, () => this.#onReset());
    });
  }

  #transmit(call: Call, fromMs: number): void {
    const { world, chance, weather } = this.#around;
    const { loss, copies, ordered } = weather();
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
    if (!chance.isLucky(loss) && !this.#isCut()) world.schedule(arrivalMs, null, arrive);
    if (chance.isLucky(copies)) {
      world.schedule(arrivalMs + chance.spread(...weather().lateMs), null, arrive);
    }
  }

  #arrive(call: Call, connection: number, isLate = false): void {
    const { world, chance, server, weather } = this.#around;
    const again = (): void => this.#arrive(call, connection, true);
    if (server.isDown || this.#isCut()) {
      // A connection is refused, or the request is lost without a word.
      if (server.isDown && chance.isLucky(0.7)) {
        world.schedule(world.nowMs + this.#delay(), this.#process, () => {
          this.#fail(call, "not_applied");
        });
      }
      return;
    }
    if (server.busyUntilMs > world.nowMs)
      return void world.schedule(server.busyUntilMs, null, again);
    if (connection !== this.#connection && !isLate) {
      const fate = chance.weigh({ lost: 4, intime: 2, late: 4 });
      if (fate === "lost") return;
      if (fate === "late") {
        return void world.schedule(world.nowMs + chance.spread(...weather().lateMs), null, again);
      }
    }
    const execution = server.execute(call.commands);
    if (connection !== this.#connection || chance.isLucky(weather().loss)) return;
    let replyMs = world.nowMs + this.#delay();
    if (weather().ordered) {
      replyMs = Math.max(replyMs, this.#lastReplyMs);
      this.#lastReplyMs = replyMs;
    }
    world.schedule(replyMs, this.#process, () => {
      if (connection !== this.#connection || !this.#calls.delete(call)) return;
      call.resolve({ ...execution, resent: call.isResent });
    });
  }

  /** To the store, a push is sent as soon as it is on its way. */
  #deliver(push: Push): boolean {
    const { world, chance, weather } = this.#around;
    const { loss, copies } = weather();
    const times = chance.isLucky(loss) || this.#isCut() ? 0 : chance.isLucky(copies) ? 2 : 1;
    for (let time = 0; time < times; time += 1) {
      const { slowPush } = weather();
      const delayMs =
        delayOf(weather(), chance, slowPush) + (time > 0 ? chance.spread(...weather().lateMs) : 0);
      world.schedule(world.nowMs + delayMs, this.#process, () => {
        if (!this.#isClosed) this.#onPush(push);
      });
    }
    return true;
  }

  #fail(call: Call, outcome: "unknown" | "not_applied"): void {
    if (this.#calls.delete(call)) call.reject(new StoreError("The connection broke.", { outcome }));
  }

  #isCut(): boolean {
    return this.#around.world.nowMs < this.#cutUntilMs;
  }

  #delay(): number {
    return delayOf(this.#around.weather(), this.#around.chance);
  }
}
