import { StoreError } from "../../errors.js";
import type { Command, ReplyTo } from "../../rules/ledger-command.js";
import type { Arbiter, Execution } from "./arbiter.js";
import { StoreTime } from "./store-time.js";

/** A reply with what it takes to judge it. */
export interface Answer<C extends Command> {
  readonly reply: ReplyTo<C>;
  /** Local time just before the request was sent: deadlines count from here. */
  readonly sentMs: number;
  /** The store's time in the reply. */
  readonly nowUs: number;
  /** The command may arrive once more. */
  readonly resent: boolean;
}

interface Entry {
  readonly command: Command;
  resolve(answer: Answer<Command>): void;
  reject(error: unknown): void;
}

/** A larger batch would keep the store and this process busy for too long at a stretch. */
const MAX_BATCH = 1_000;

/** How long one call may take before its outcome counts as unknown. */
const CALL_TIMEOUT_MS = 5_000;

/**
 * The way to an arbiter. Commands issued in one turn of the event loop travel as one call; a single
 * one is not delayed. Every call settles within its time-out, whatever the client below does.
 */
export class Channel {
  readonly #arbiter: Arbiter;
  readonly #times = new Map<string, StoreTime>();
  readonly #greetings = new Map<string, Promise<void>>();
  #pending: Entry[] = [];

  constructor(arbiter: Arbiter) {
    this.#arbiter = arbiter;
  }

  time(key: string): StoreTime {
    return this.#timeOf(this.#arbiter.shardOf(key));
  }

  /**
   * Asks for the store's time where none is known, because commands say until when they are valid.
   * Returns nothing where there is nothing to wait for.
   */
  greet(key: string): Promise<void> | undefined {
    if (this.time(key).isKnown) return undefined;
    const shard = this.#arbiter.shardOf(key);
    let greeting = this.#greetings.get(shard);
    if (!greeting) {
      greeting = this.#call(shard, []).finally(() => this.#greetings.delete(shard));
      this.#greetings.set(shard, greeting);
    }
    return greeting;
  }

  /** Sends with whatever else is issued in this turn. */
  send<C extends Command>(command: C): Promise<Answer<C>> {
    if (this.#arbiter.isLocal) return this.sendNow(command);
    return new Promise((resolve, reject) => {
      this.#pending.push({ command, resolve: resolve as Entry["resolve"], reject });
      if (this.#pending.length === 1) this.#arbiter.port.timers.soon(() => this.#flush());
    });
  }

  /** Sends before this returns, past everything that is waiting to be sent. */
  sendNow<C extends Command>(command: C): Promise<Answer<C>> {
    return new Promise((resolve, reject) => {
      const entry = { command, resolve: resolve as Entry["resolve"], reject };
      void this.#call(this.#arbiter.shardOf(command.key), [entry]);
    });
  }

  #flush(): void {
    const shards = new Map<string, Entry[]>();
    for (const entry of this.#pending) {
      const shard = this.#arbiter.shardOf(entry.command.key);
      const entries = shards.get(shard);
      if (entries) entries.push(entry);
      else shards.set(shard, [entry]);
    }
    this.#pending = [];
    for (const [shard, entries] of shards) {
      for (let start = 0; start < entries.length; start += MAX_BATCH) {
        void this.#call(shard, entries.slice(start, start + MAX_BATCH));
      }
    }
  }

  /** Never rejects where there are entries: they carry the outcome. */
  async #call(shard: string, entries: readonly Entry[]): Promise<void> {
    const { clock } = this.#arbiter.port;
    const commands = entries.map((entry) => entry.command);
    const sentMs = clock.nowMs();
    try {
      const execution = this.#arbiter.execute(shard, commands);
      if (execution instanceof Promise) {
        this.#deliver(shard, entries, sentMs, await this.#withTimeout(execution));
      } else this.#deliver(shard, entries, sentMs, execution);
    } catch (error) {
      if (entries.length === 0) throw error;
      for (const entry of entries) entry.reject(error);
    }
  }

  #deliver(shard: string, entries: readonly Entry[], sentMs: number, execution: Execution): void {
    const { nowUs, node, replies, resent = false } = execution;
    this.#timeOf(shard).learn(node, sentMs, nowUs, this.#arbiter.port.clock.nowMs());
    for (let index = 0; index < entries.length; index += 1) {
      const entry = entries[index] as Entry;
      const reply = replies[index];
      if (reply === undefined || reply instanceof Error) entry.reject(reply ?? silence());
      else entry.resolve({ reply, sentMs, nowUs, resent });
    }
  }

  #timeOf(shard: string): StoreTime {
    let time = this.#times.get(shard);
    if (!time) {
      time = new StoreTime();
      this.#times.set(shard, time);
    }
    return time;
  }

  #withTimeout(execution: Promise<Execution>): Promise<Execution> {
    return new Promise((resolve, reject) => {
      const { timers } = this.#arbiter.port;
      const timer = timers.after(CALL_TIMEOUT_MS, () => reject(silence()));
      execution.finally(() => timer.cancel()).then(resolve, reject);
    });
  }
}

function silence(): StoreError {
  return new StoreError("The store did not answer in time.", { outcome: "unknown" });
}
