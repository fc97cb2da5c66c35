import type { Command, Push, View } from "../src/rules/ledger-command.js";
import type { Store, Traits } from "../src/store.js";
import type { Arbiter, Execution } from "../src/stores/arbiter/arbiter.js";
import { ArbiterStore } from "../src/stores/arbiter/arbiter-store.js";
import type { Port } from "../src/time/port.js";
import type { StoreServer } from "./store-server.js";

/** A way to the store, and what can happen to it. */
export interface Way {
  /** The store is in this very process. */
  readonly isLocal: boolean;
  /** Calls without an answer. */
  readonly callsUnderWay: number;
  /** The process is gone; the store notices it after a while, or never does (null). */
  abandon(noticedMs: number | null): void;
  /** Nothing gets through for a while, and nobody is told. */
  cut(forMs: number): void;
  /** The connections break. */
  reset(): void;
  /** The connections break as soon as something is under way on them. */
  resetNext(): void;
  /** The real store, over this way. */
  openStore(offerMs: number | undefined): Store;
}

export type Link = Arbiter & Way;

export function storeOver(link: Link, offerMs: number | undefined): Store {
  return new ArbiterStore(link, offerMs === undefined ? {} : { offerMs });
}

export const TRAITS: Traits = {
  scope: "network",
  modes: ["exclusive", "shared"],
  fifo: true,
  tokenSpan: true,
  transferable: true,
  marks: true,
  minTtlMs: 10,
};

/**
 * The store is in this very process, as the one in memory: it answers at once, and nothing breaks.
 */
export class LocalLink implements Link {
  readonly name = "simulated";
  readonly traits: Traits = TRAITS;
  readonly isLocal = true;
  readonly believesPushes = true;
  readonly callsUnderWay = 0;
  readonly port: Port;
  readonly #server: StoreServer;
  #client = "";

  constructor(port: Port, server: StoreServer) {
    this.port = port;
    this.#server = server;
  }

  openStore(offerMs: number | undefined): Store {
    return storeOver(this, offerMs);
  }

  shardOf(): string {
    return "";
  }

  execute(_shard: string, commands: readonly Command[]): Execution {
    return this.#server.execute(commands);
  }

  list(): AsyncIterable<{ key: string; view: View }> {
    throw new Error("Nothing in the simulation lists a store.");
  }

  listen(client: string, onPush: (push: Push) => void): void {
    this.#client = client;
    this.#server.subscribe(client, (push) => {
      this.port.timers.soon(() => onPush(push));
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
