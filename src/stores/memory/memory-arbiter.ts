import type { Examination, ExamineRequest } from "../../contract/examination.js";
import type { Traits } from "../../contract/store.js";
import type { Arbiter, Execution } from "../../families/ledger/arbiter.js";
import type { Command, Push, View } from "../../rules/ledger-command.js";
import type { Runtime } from "../../time/runtime.js";
import type { MemorySpace } from "./memory-space.js";

const TRAITS: Traits = {
  scope: "process",
  modes: ["exclusive", "shared"],
  fifo: true,
  tokenSpan: true,
  transferable: true,
  marks: true,
  minTtlMs: 10,
};

/** One client of a space in memory. */
export class MemoryArbiter implements Arbiter {
  readonly name = "memory";
  readonly traits: Traits = TRAITS;
  readonly isLocal = true;
  readonly believesPushes = true;
  readonly #space: MemorySpace;
  #client = "";

  constructor(space: MemorySpace) {
    this.#space = space;
  }

  get runtime(): Runtime {
    return this.#space.runtime;
  }

  shardOf(): string {
    return "";
  }

  execute(_shard: string, commands: readonly Command[]): Execution {
    return this.#space.execute(commands);
  }

  async *list(prefix: string): AsyncIterable<{ key: string; view: View }> {
    yield* this.#space.list(prefix);
  }

  listen(client: string, onPush: (push: Push) => void): void {
    this.#client = client;
    this.#space.listen(client, onPush);
  }

  async examine(request: ExamineRequest): Promise<Examination> {
    // Only a doctor needs this.
    const { examineMemory } = await import("./examination.js");
    return examineMemory(request);
  }

  async close(): Promise<void> {
    this.#space.leave(this.#client);
  }
}
