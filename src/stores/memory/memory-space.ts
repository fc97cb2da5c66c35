import type { Execution } from "../../families/ledger/arbiter.js";
import type { Command, Instant, Push, Reply, View } from "../../rules/ledger-command.js";
import { Upkeep } from "../../rules/upkeep.js";
import type { Clock } from "../../time/clock.js";
import { localRuntime, type Runtime } from "../../time/runtime.js";
import { MemoryLedger } from "./memory-ledger.js";

/** One instant; only a grant asks for the wall clock. */
class Moment implements Instant {
  readonly #clock: Clock;
  readonly us: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.us = Math.floor(clock.nowMs() * 1000);
  }

  get wallUs(): number {
    return this.#clock.wallUs();
  }
}

/** A space of locks in memory; stores made from one space exclude each other. */
export class MemorySpace {
  readonly #listeners = new Map<string, (push: Push) => void>();
  readonly #ledger: MemoryLedger = new MemoryLedger((push) => this.#emit(push));
  readonly #upkeep = new Upkeep();
  /** The clock its leases run by. */
  readonly runtime: Runtime;
  #pushes: Push[] = [];

  constructor(runtime: Runtime = localRuntime) {
    this.runtime = runtime;
  }

  /** How many names are in use. */
  get size(): number {
    return this.#ledger.size;
  }

  /** For the store: delivers the pushes for one client. */
  listen(client: string, onPush: (push: Push) => void): void {
    this.#listeners.set(client, onPush);
  }

  /** For the store: delivers no more pushes for this client. */
  leave(client: string): void {
    this.#listeners.delete(client);
  }

  /** For the store: runs the commands in order, at one instant. */
  execute(commands: readonly Command[]): Execution {
    const at = this.#now();
    this.#upkeep.startBatch();
    // A list of one, without a function made for it: nearly every batch in memory is one command.
    const replies = new Array<Reply>(commands.length);
    for (let index = 0; index < commands.length; index += 1) {
      replies[index] = this.#ledger.execute(commands[index] as Command, at, this.#upkeep);
    }
    if (this.#pushes.length > 0) this.runtime.timers.soon(() => this.#deliver());
    return { nowUs: at.us, node: "", replies };
  }

  /** For the store: all names in use whose key begins with the prefix. */
  list(prefix: string): { key: string; view: View }[] {
    return this.#ledger.list(prefix, this.#now());
  }

  #now(): Instant {
    return new Moment(this.runtime.clock);
  }

  #emit(push: Push): boolean {
    if (!this.#listeners.has(push.client)) return false;
    this.#pushes.push(push);
    return true;
  }

  #deliver(): void {
    const pushes = this.#pushes;
    this.#pushes = [];
    for (const push of pushes) this.#listeners.get(push.client)?.(push);
  }
}
