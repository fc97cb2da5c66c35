import type { Examination, ExamineRequest } from "../../contract/examination.js";
import type { Traits } from "../../contract/store.js";
import type { StoreError } from "../../errors/index.js";
import type { Command, Push, Reply, View } from "../../rules/ledger-command.js";
import type { Runtime } from "../../time/runtime.js";

/** The answer to one batch of commands. */
export interface Execution {
  /** The store's time at which the batch ran. */
  readonly nowUs: number;
  /** The run of the server that answered: another run, or another server, has another clock. */
  readonly node: string;
  /** One per command, in order; an error where only that command failed. */
  readonly replies: readonly (Reply | StoreError)[];
  /**
   * Local time just before the batch was sent, where that was later than the call of `execute`:
   * deadlines count from here.
   */
  readonly sentMs?: number;
  /** The connection changed under way: a command may reach the store a second time. */
  readonly resent?: boolean;
}

/**
 * A place that runs the commands of the ledger atomically, in one round trip, and pushes messages
 * to clients. The family does the rest.
 */
export interface Arbiter {
  /** As `Store.name`. */
  readonly name: string;
  /** As `Store.namespace`. */
  readonly namespace?: string;
  /** As `Store.traits`. */
  readonly traits: Traits;
  /** As `Store.runtime`. */
  readonly runtime: Runtime;
  /** True where `execute` answers within the call: no batches and no time-outs are needed. */
  readonly isLocal: boolean;
  /** False where a handed-off grant counts only after its confirm is answered. */
  readonly believesPushes: boolean;

  /** The longest time between two heartbeats of a waiter; finite where pushes do not arrive. */
  readonly pollMs?: number;

  /** Commands of one shard travel together and share one clock. */
  shardOf(key: string): string;
  /**
   * Runs the commands in order at one instant. A throw: unknown for all of them. Only the fields
   * that `Command` names are for the arbiter.
   */
  execute(shard: string, commands: readonly Command[]): Execution | Promise<Execution>;
  /** All names in use whose key begins with the prefix. */
  list(prefix: string): AsyncIterable<{ readonly key: string; readonly view: View }>;
  /**
   * Starts to deliver pushes for `client`. `onReset` tells that some may have been missed. Called
   * once, before the first command.
   */
  listen(client: string, onPush: (push: Push) => void, onReset: () => void): void;
  /** As `Store.explain`. */
  explain?(error: StoreError): Promise<StoreError>;
  /** As `Store.examine`. */
  examine?(request: ExamineRequest): Promise<Examination>;
  /** Frees what the arbiter opened itself; called once, when nothing is under way any more. */
  close(): Promise<void>;
}
