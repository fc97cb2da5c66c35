import { StoreError } from "../../errors.js";
import type { Command, ReplyTo } from "../../rules/ledger-command.js";
import { within } from "../../time/timers.js";
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

  /** Sends with whatever else is issued in this turn; a local arbiter answers at once. */
  send<C extends Command>(command: C): Answer<C> | Promise<Answer<C>> {
    if (this.#arbiter.isLocal) return this.#answerAtOnce(command);
    return new Promise((resolve, reject) => {
      this.#pending.push({ command, resolve: resolve as Entry["resolve"], reject });
      if (this.#pending.length === 1) this.#arbiter.port.timers.soon(() => this.#flush());
    });
  }

  /** Sends before this returns, past everything that is waiting to be sent. */
  async sendNow<C extends Command>(command: C): Promise<Answer<C>> {
    if (this.#arbiter.isLocal) return this.#answerAtOnce(command);
    return new Promise((resolve, reject) => {
      const entry = { command, resolve: resolve as Entry["resolve"], reject };
      void this.#call(this.#arbiter.shardOf(command.key), [entry]);
    });
  }

  #answerAtOnce<C extends Command>(command: C): Answer<C> {
    const sentMs = this.#arbiter.port.clock.nowMs();
    const { nowUs, node, replies } = this.#arbiter.execute("", [command]) as Execution;
    this.#timeOf("").learn(node, sentMs, nowUs, sentMs);
    return { reply: replies[0] as ReplyTo<C>, sentMs, nowUs, resent: false };
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
      this.#deliver(shard, entries, sentMs, await this.#execute(shard, commands));
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
      if (reply === undefined || reply instanceof Error) entry.reject(reply ?? noReply());
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

  /** Whatever the client below throws, or when it says nothing at all: the outcome is unknown. */
  async #execute(shard: string, commands: readonly Command[]): Promise<Execution> {
    try {
      const execution = Promise.resolve(this.#arbiter.execute(shard, commands));
      return await within(this.#arbiter.port.timers, CALL_TIMEOUT_MS, execution);
    } catch (cause) {
      if (cause instanceof StoreError) throw cause;
      const message = cause instanceof Error ? cause.message : String(cause);
      throw new StoreError(`The store failed: ${message}`, { outcome: "unknown", cause });
    }
  }
}

function noReply(): StoreError {
  return new StoreError("The store left a command without a reply.", { outcome: "unknown" });
}
