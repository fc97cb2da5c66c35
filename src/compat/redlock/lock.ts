import type { Votes } from "../client-quorum.js";
import type { ScriptClient } from "../script-client.js";
import type { Redlock } from "./redlock.js";

/** A client of one server or Cluster. */
export type Client = ScriptClient;

/** The votes of all clients in one attempt. */
export type ExecutionStats = Votes<Client>;

/** The vote of one client. */
export type ClientExecutionResult =
  | { client: Client; vote: "for"; value: number }
  | { client: Client; vote: "against"; error: Error };

/** The end of an operation that a majority did. */
export type ExecutionResult = {
  /** The votes of each attempt. */
  attempts: readonly Promise<ExecutionStats>[];
};

/** Resources that are locked until `expiration`, unless they are released or extended before. */
export class Lock {
  /** The instance that acquired it. */
  readonly redlock: Redlock;
  /** The keys. */
  readonly resources: string[];
  /** The random value at the keys. */
  readonly value: string;
  /** The votes of each attempt. */
  readonly attempts: readonly Promise<ExecutionStats>[];
  /** Until then, by the wall clock, it can be relied on; 0 once it is released or extended. */
  expiration: number;
  // Not enumerable: JSON has no bigint.
  readonly #token: bigint | undefined;

  constructor(
    redlock: Redlock,
    resources: string[],
    value: string,
    attempts: readonly Promise<ExecutionStats>[],
    expiration: number,
    token?: bigint,
  ) {
    this.redlock = redlock;
    this.resources = resources;
    this.value = value;
    this.attempts = attempts;
    this.expiration = expiration;
    this.#token = token;
  }

  /**
   * Rises from one lock to the next, for a fence: the time of the server when the lock was taken,
   * in microseconds. Undefined with several servers.
   */
  get token(): bigint | undefined {
    return this.#token;
  }

  /** Releases the resources. */
  async release(): Promise<ExecutionResult> {
    return this.redlock.release(this);
  }

  /** Extends it; the lock that this gives replaces it. */
  async extend(duration: number): Promise<Lock> {
    return this.redlock.extend(this, duration);
  }
}
