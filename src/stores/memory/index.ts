/**
 * Locks within one process, with nothing to install.
 *
 * Why it is safe: all commands run on the ledger itself, one after the other in this thread, by the
 * very clock that the leases are judged by. A grant's deadline lies before its expiry, so a holder
 * stops believing before the ledger may serve the next. Tokens follow the wall clock in
 * microseconds and the last token given, so they rise within the process and across restarts,
 * unless the wall clock was set back while no process ran.
 */
import { InvalidOptionError } from "../../errors.js";
import { knownOptions } from "../../known-options.js";
import type { Command, Instant, Push, View } from "../../rules/ledger-command.js";
import { Upkeep } from "../../rules/upkeep.js";
import type { Store, Traits } from "../../store.js";
import type { Clock } from "../../time/clock.js";
import { localPort, type Port } from "../../time/port.js";
import type { Arbiter, Execution } from "../arbiter/arbiter.js";
import { ArbiterStore } from "../arbiter/arbiter-store.js";
import { checkParameters } from "../store-url.js";
import { MemoryLedger } from "./memory-ledger.js";

const TRAITS: Traits = {
  scope: "process",
  modes: ["exclusive", "shared"],
  fifo: true,
  tokenSpan: true,
  transferable: true,
  marks: true,
  minTtlMs: 10,
};

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
  readonly port: Port;
  #pushes: Push[] = [];

  constructor(port: Port = localPort) {
    this.port = port;
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
    const replies = commands.map((command) => this.#ledger.execute(command, at, this.#upkeep));
    if (this.#pushes.length > 0) this.port.timers.soon(() => this.#deliver());
    return { nowUs: at.us, node: "", replies };
  }

  /** For the store: all names in use whose key begins with the prefix. */
  list(prefix: string): { key: string; view: View }[] {
    return this.#ledger.list(prefix, this.#now());
  }

  #now(): Instant {
    return new Moment(this.port.clock);
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

class MemoryArbiter implements Arbiter {
  readonly name = "memory";
  readonly traits = TRAITS;
  readonly isLocal = true;
  readonly believesPushes = true;
  readonly #space: MemorySpace;
  #client = "";

  constructor(space: MemorySpace) {
    this.#space = space;
  }

  get port(): Port {
    return this.#space.port;
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

  async close(): Promise<void> {
    this.#space.leave(this.#client);
  }
}

/** Which locks in memory to use. */
export interface MemoryStoreOptions {
  /** Stores with the same space share their locks. Default: a space of its own. */
  readonly space?: MemorySpace;
  /** How long a handed-off grant waits for its confirm. Default: 2 s or a sixth of the ttl. */
  readonly offerMs?: number;
}

const EXAMPLE = "must be an object: memoryStore({ space })";

/**
 * Locks of one process: for tests, tools and programs that run once.
 *
 * @example
 * import { Holdfast } from "holdfast";
 * import { MemorySpace, memoryStore } from "holdfast/memory";
 *
 * const space = new MemorySpace(); // two that share a space exclude each other
 * const ours = new Holdfast(memoryStore({ space }));
 * const theirs = new Holdfast(memoryStore({ space }));
 */
export function memoryStore(options?: MemoryStoreOptions): Store {
  const { space = new MemorySpace(), offerMs } = knownOptions(
    options,
    ["space", "offerMs"],
    EXAMPLE,
  );
  if (!(space instanceof MemorySpace)) {
    throw new InvalidOptionError("space", space, "must be a MemorySpace");
  }
  const arbiter = new MemoryArbiter(space);
  return new ArbiterStore(arbiter, offerMs === undefined ? {} : { offerMs });
}

const named = new Map<string, MemorySpace>();

/**
 * `memory:` is a space of its own; `memory:name` is shared by all of this process who say that
 * name, with slashes before it or without.
 */
export function openMemoryStore(url: URL): Store {
  checkParameters(url, []);
  const name = url.host + url.pathname;
  if (name === "") return memoryStore();
  const space = named.get(name) ?? new MemorySpace();
  named.set(name, space);
  return memoryStore({ space });
}
