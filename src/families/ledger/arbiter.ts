import type { Examination, ExamineRequest } from "../../contract/examination.js";
import type { Traits } from "../../contract/store.js";
import type { StoreError } from "../../errors/index.js";
import type { Command, Push, Reply, View } from "../../rules/ledger-command.js";
import type { Runtime } from "../../time/runtime.js";

/** The result of one batch of commands. */
export interface Execution {
  /** The store's time when the batch ran. */
  readonly nowUs: number;
  /** The run of the server that answered. After a restart or failover the clock may differ. */
  readonly node: string;
  /** One reply per command, in order; an error if only that command failed. */
  readonly replies: readonly (Reply | StoreError)[];
  /**
   * The local time just before the batch was sent, if that was later than the call of `execute`.
   * Deadlines are measured from it.
   */
  readonly sentMs?: number;
  /** The connection changed during the call, so the store may get a command twice. */
  readonly resent?: boolean;
}

/**
 * Runs the commands of the ledger atomically, in one round trip, and pushes messages to clients.
 * The family does the rest.
 */
export interface Arbiter {
  /** See `Store.name`. */
  readonly name: string;
  /** See `Store.namespace`. */
  readonly namespace?: string;
  /** See `Store.traits`. */
  readonly traits: Traits;
  /** See `Store.runtime`. */
  readonly runtime: Runtime;
  /** True if `execute` answers synchronously. Commands then need no batches and no timeouts. */
  readonly isLocal: boolean;
  /** False if an offer may be relied on only after its confirm is answered. */
  readonly believesPushes: boolean;

  /** The longest time between two heartbeats of a waiter, if the store may not push. */
  readonly pollMs?: number;

  /** Returns the shard of a key. Commands of one shard share a batch and a clock. */
  shardOf(key: string): string;
  /**
   * Runs the commands in order and atomically. An error means "unknown" for all of them. A command
   * object may have more fields than `Command` declares; ignore those.
   */
  execute(shard: string, commands: readonly Command[]): Execution | Promise<Execution>;
  /** Lists all names in use whose key begins with the prefix. */
  list(prefix: string): AsyncIterable<{ readonly key: string; readonly view: View }>;
  /**
   * Starts to deliver pushes for `client`. Calls `onReset` when some may have been missed. The
   * family calls this once, before the first acquire or resume.
   */
  listen(client: string, onPush: (push: Push) => void, onReset: () => void): void;
  /** See `Store.explain`. */
  explain?(error: StoreError): Promise<StoreError>;
  /** See `Store.examine`. */
  examine?(request: ExamineRequest): Promise<Examination>;
  /** Closes what the arbiter opened itself. Called once, after all other calls. */
  close(): Promise<void>;
}
