/**
 * The link from a simulated process to one server that runs the ledger: requests, replies and
 * pushes are late, lost, repeated or overtaken, and connections break.
 */

import type { Store, Traits } from "../src/contract/store.js";
import { StoreError } from "../src/errors/index.js";
import type { Execution } from "../src/families/ledger/arbiter.js";
import { CALL_TIMEOUT_MS } from "../src/families/ledger/command-batcher.js";
import type { Command, Push, View } from "../src/rules/ledger-command.js";
import type { Runtime } from "../src/time/runtime.js";
import { nameOf } from "./account.js";
import { Connection, type Network } from "./connection.js";
import { type ArbiterLink, learnEnds, storeOver, TRAITS } from "./link.js";
import type { SimulatedProcess } from "./process.js";
import type { StoreServer } from "./store-server.js";
import { delayOf } from "./weather.js";

interface Call {
  readonly commands: readonly Command[];
  readonly resolve: (execution: Execution) => void;
  readonly reject: (error: StoreError) => void;
  readonly sentMs: number;
  isResent: boolean;
}

const RESUBSCRIBE_MS = 50;

export class NetworkLink implements ArbiterLink {
  readonly name = "simulated";
  readonly traits: Traits = TRAITS;
  readonly isLocal = false;
  readonly believesPushes: boolean;
  readonly runtime: Runtime;
  readonly #process: SimulatedProcess;
  readonly #server: StoreServer;
  readonly #network: Network;
  readonly #connection: Connection;
  readonly #calls = new Set<Call>();
  #isClosed = false;
  #client = "";
  #onPush: (push: Push) => void = () => {};
  #onReset: () => void = () => {};

  constructor(
    process: SimulatedProcess,
    server: StoreServer,
    network: Network,
    believesPushes: boolean,
  ) {
    this.runtime = process.runtime;
    this.believesPushes = believesPushes;
    this.#process = process;
    this.#server = server;
    this.#network = network;
    this.#connection = new Connection(process, network, { server, onBreak: () => this.reset() });
    server.onRestart(() => this.reset());
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
      const sentMs = this.runtime.clock.nowMs();
      const call = { commands, resolve, reject, sentMs, isResent: false };
      this.#calls.add(call);
      this.#send(call);
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
    this.#server.unsubscribe(this.#client);
    for (const call of this.#calls) this.#fail(call, "unknown");
  }

  abandon(noticedMs: number | null): void {
    this.#isClosed = true;
    this.#connection.abandon();
    if (noticedMs === null) return;
    const { world } = this.#network;
    world.schedule(world.nowMs + noticedMs, null, () => this.#server.unsubscribe(this.#client));
  }

  cut(forMs: number): void {
    this.#connection.cut(forMs);
  }

  resetNext(): void {
    this.#connection.breakNext();
  }

  reset(): void {
    if (this.#isClosed) return;
    this.#connection.replace(
      this.#calls,
      (call) => {
        call.isResent = true;
        this.#send(call);
      },
      (call) => this.#fail(call, "unknown"),
    );
    if (this.#client === "") return;
    this.#server.unsubscribe(this.#client);
    this.#subscribe(this.#network.world.nowMs);
  }

  #subscribe(fromMs: number): void {
    const { world } = this.#network;
    const connection = this.#connection;
    const { number } = connection;
    world.schedule(fromMs + connection.delayMs(), null, () => {
      if (this.#isClosed || number !== connection.number) return;
      const isReached = !this.#server.isDown && !connection.isCut;
      if (!isReached) return this.#subscribe(world.nowMs + RESUBSCRIBE_MS);
      this.#server.subscribe(this.#client, (push) => this.#deliver(push));
      world.schedule(world.nowMs + connection.delayMs(), this.#process, () => this.#onReset());
    });
  }

  #send(call: Call): void {
    this.#connection.send({
      execute: () => {
        const execution = this.#server.execute(call.commands);
        const saidMs = this.#network.world.nowMs;
        return () => {
          if (!this.#calls.delete(call)) return;
          // A later answer may be older than a grant that the owner got since: it tells nothing.
          const isInTime = this.runtime.clock.nowMs() - call.sentMs < CALL_TIMEOUT_MS;
          if (isInTime) learnEnds(this.#process, call.commands, execution, saidMs);
          call.resolve({ ...execution, resent: call.isResent });
        };
      },
      onRefused: () => this.#fail(call, "not_applied"),
    });
  }

  /** To the store, a push is sent as soon as it is on its way. */
  #deliver(push: Push): boolean {
    const { world, chance, weather } = this.#network;
    const { loss, copies, slowPush, lateMs } = weather();
    const isLost = chance.isLucky(loss) || this.#connection.isCut;
    const times = isLost ? 0 : chance.isLucky(copies) ? 2 : 1;
    const saidMs = world.nowMs;
    for (let time = 0; time < times; time += 1) {
      const delayMs = delayOf(weather(), chance, slowPush);
      const extraMs = time > 0 ? chance.spread(...lateMs) : 0;
      world.schedule(world.nowMs + delayMs + extraMs, this.#process, () => {
        if (this.#isClosed) return;
        if (push.type === "revoked") {
          this.#process.learn({ name: nameOf(push.key), owner: push.owner, saidMs });
        }
        this.#onPush(push);
      });
    }
    return true;
  }

  #fail(call: Call, outcome: "unknown" | "not_applied"): void {
    if (this.#calls.delete(call)) call.reject(new StoreError("The connection broke.", { outcome }));
  }
}
