import type { StoreError } from "../../errors.js";
import type { Command, Push, Reply, View } from "../../rules/ledger-command.js";
import type { Traits } from "../../store.js";
import type { Port } from "../../time/port.js";

/** What one call to the store answered. */
export interface Execution {
  /** The store's time when it acted. */
  readonly nowUs: number;
  /** Which run of which server that was: its clock is nobody else's. */
  readonly node: string;
  /** One per command, in order; an error where only that command failed. */
  readonly replies: readonly (Reply | StoreError)[];
  /** The connection changed under way: some command may arrive once more. */
  readonly resent?: boolean;
}

/**
 * What an arbiter store implements: the ledger's commands in one round trip, and pushes to this
 * client. All else is the family's.
 */
export interface Arbiter {
  readonly name: string;
  readonly namespace?: string;
  readonly traits: Traits;
  readonly port: Port;
  /** Answers within the call, in this process: nothing to batch, nothing to time out. */
  readonly isLocal: boolean;
  /** False where a handed-off grant counts only after its confirm was answered. */
  readonly believesPushes: boolean;

  /** Commands of one shard travel together and share one clock. */
  shardOf(key: string): string;
  /** Runs the commands in order at one instant. A throw: unknown for all of them. */
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
  close(): Promise<void>;
}
