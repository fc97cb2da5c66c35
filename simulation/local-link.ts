import type { Store, Traits } from "../src/contract/store.js";
import type { Execution } from "../src/families/ledger/arbiter.js";
import type { Command, Push, View } from "../src/rules/ledger-command.js";
import type { Runtime } from "../src/time/runtime.js";
import { type ArbiterLink, learnEnds, storeOver, TRAITS } from "./link.js";
import type { SimulatedProcess } from "./process.js";
import type { StoreServer } from "./store-server.js";

/** The link to a store in the same process, as the one in memory: it answers at once, always. */
export class LocalLink implements ArbiterLink {
  readonly name = "simulated";
  readonly traits: Traits = TRAITS;
  readonly isLocal = true;
  readonly believesPushes = true;
  readonly callsUnderWay = 0;
  readonly runtime: Runtime;
  readonly #process: SimulatedProcess;
  readonly #server: StoreServer;
  #client = "";

  constructor(process: SimulatedProcess, server: StoreServer) {
    this.runtime = process.runtime;
    this.#process = process;
    this.#server = server;
  }

  openStore(offerMs: number | undefined): Store {
    return storeOver(this, offerMs);
  }

  shardOf(): string {
    return "";
  }

  execute(_shard: string, commands: readonly Command[]): Execution {
    const execution = this.#server.execute(commands);
    learnEnds(this.#process, commands, execution, this.#process.nowMs);
    return execution;
  }

  list(): AsyncIterable<{ key: string; view: View }> {
    throw new Error("Nothing in the simulation lists a store.");
  }

  listen(client: string, onPush: (push: Push) => void): void {
    this.#client = client;
    this.#server.subscribe(client, (push) => {
      this.runtime.timers.soon(() => onPush(push));
      return true;
    });
  }

  async close(): Promise<void> {
    this.#server.unsubscribe(this.#client);
  }

  abandon(): void {}
  cut(): void {}
  reset(): void {}
  resetNext(): void {}
}
