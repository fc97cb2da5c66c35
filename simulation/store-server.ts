/**
 * The server of an arbiter store: the real ledger behind a clock that drifts and steps, in a
 * process that may stop or restart. It keeps an account for the checkers, which do not trust the
 * ledger.
 */

import type { Execution } from "../src/families/ledger/arbiter.js";
import type { Command, Push, Reply, Revoke } from "../src/rules/ledger-command.js";
import { Upkeep } from "../src/rules/upkeep.js";
import { MemoryLedger } from "../src/stores/memory/memory-ledger.js";
import { Account, nameOf } from "./account.js";
import type { Chance } from "./chance.js";
import type { History } from "./history.js";
import type { World } from "./world.js";

const WALL_US = 1_700_000_000_000_000;

export interface StoreClock {
  readonly rate: number;
  /** World time at which the process of the store is. */
  nowMs(): number;
  /** Leases run by the wall clock, as in Redis, and not by a clock that never steps. */
  readonly leasesStep: boolean;
}

/** The server or servers of a store, as a scenario sees them. */
export interface StoreSide {
  /** How many names the server still keeps. */
  readonly size: number;
  /** By how much the clock was set back in all: leases may last so much longer. */
  readonly setBackMs: number;
  census(): { holders: number; waiters: number };
  step(byMs: number): void;
  stall(forMs: number): void;
  restart(downMs: number, forgets: boolean): void;
  /** Saves a snapshot, where the data is not saved all the time. */
  save(): void;
  /** Waits for a moment at which a fault does harm, and brings it about then. */
  ambush?(world: World, chance: Chance): void;
}

/** Delivers a push; false when the client is known to be gone. */
export type Deliver = (push: Push) => boolean;

export class StoreServer implements StoreSide {
  readonly #history: History;
  readonly #clock: StoreClock;
  readonly #account: Account;
  readonly #subscribers = new Map<string, Deliver>();
  readonly #ledger: MemoryLedger = new MemoryLedger((push) => this.#emit(push));
  readonly #upkeep: Upkeep;
  readonly #onRestart = new Set<() => void>();
  #steppedMs = 0;
  #setBackMs = 0;
  #runs = 0;
  #downUntilMs = 0;
  #busyUntilMs = 0;
  /** Is given the command that would revoke the lease. */
  #onHandoff: ((revoke: Revoke) => void) | null = null;
  /** The client whose heartbeat is being executed: it learns of its grants by the reply. */
  #sender: string | null = null;

  constructor(history: History, clock: StoreClock, slice: number) {
    this.#history = history;
    this.#upkeep = new Upkeep(slice);
    this.#clock = clock;
    this.#account = new Account(history);
  }

  get size(): number {
    return this.#ledger.size;
  }

  get isDown(): boolean {
    return this.#clock.nowMs() < this.#downUntilMs;
  }

  /** World time before which the server does not answer. */
  get busyUntilMs(): number {
    return this.#busyUntilMs;
  }

  execute(commands: readonly Command[]): Execution {
    const at = this.#instant();
    this.#upkeep.startBatch();
    const replies = commands.map((command) => {
      this.#account.before(this.#clock.nowMs(), at, command);
      this.#sender = command.type === "heartbeat" ? command.client : null;
      const reply: Reply = this.#ledger.execute(command, at, this.#upkeep);
      this.#account.after(this.#clock.nowMs(), at, command, reply);
      return reply;
    });
    return { nowUs: at.us, node: `run-${this.#runs}`, replies };
  }

  /** Holders and waiters of all names; like any command, this drops what has expired. */
  census(): { holders: number; waiters: number } {
    const views = this.#ledger.list("", this.#instant());
    return {
      holders: views.reduce((sum, { view }) => sum + view.holders.length, 0),
      waiters: views.reduce((sum, { view }) => sum + view.waiters.length, 0),
    };
  }

  subscribe(client: string, deliver: Deliver): void {
    this.#subscribers.set(client, deliver);
  }

  unsubscribe(client: string): void {
    this.#subscribers.delete(client);
  }

  /** Connections break when the server restarts. */
  onRestart(listener: () => void): void {
    this.#onRestart.add(listener);
  }

  get setBackMs(): number {
    return this.#setBackMs;
  }

  step(byMs: number): void {
    this.#steppedMs += byMs;
    this.#setBackMs += Math.max(0, -byMs);
    if (this.#clock.leasesStep)
      this.#history.record(this.#clock.nowMs(), { type: "stepped", byMs });
  }

  stall(forMs: number): void {
    this.#busyUntilMs = this.#clock.nowMs() + forMs;
  }

  restart(downMs: number, forgets: boolean): void {
    this.#downUntilMs = this.#clock.nowMs() + downMs;
    this.#runs += 1;
    this.#subscribers.clear();
    if (forgets) {
      this.#ledger.forget();
      this.#account.forget();
      this.#history.record(this.#clock.nowMs(), { type: "forgot" });
    }
    for (const listener of this.#onRestart) listener();
  }

  save(): void {}

  /** The next lease that is handed over is revoked while its push is under way. */
  ambush(world: World, chance: Chance): void {
    this.#onHandoff = (revoke) => {
      this.#onHandoff = null;
      world.schedule(world.nowMs + chance.spread(0.1, 5), null, () => this.execute([revoke]));
    };
  }

  #instant(): { us: number; wallUs: number } {
    const { rate, leasesStep } = this.#clock;
    const steadyUs = this.#clock.nowMs() * rate * 1000;
    const wallUs = WALL_US + Math.floor(steadyUs + this.#steppedMs * 1000);
    return { us: leasesStep ? wallUs : Math.floor(steadyUs), wallUs };
  }

  #emit(push: Push): boolean {
    const isSent = this.#subscribers.get(push.client)?.(push) ?? false;
    if (isSent && push.type === "granted") {
      const { key, grant } = push;
      this.#onHandoff?.({ type: "revoke", key, token: grant.token, reason: "chance" });
    }
    const name = nameOf(push.key);
    const isHeard = isSent || push.client === this.#sender;
    this.#account.pushed(this.#clock.nowMs(), this.#instant(), name, push, isHeard);
    return isSent;
  }
}
