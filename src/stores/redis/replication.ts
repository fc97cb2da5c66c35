/**
 * Batches of a store with `replicas`: each runs on the connection that then waits for the replicas.
 *
 * Why it is safe: WAIT counts the replicas that acknowledged the last *write of its own connection*
 * (Redis up to 7.0: all writes before its last command). So a batch whose answer may be believed
 * always writes (the flag PROVE), and WAIT follows on the same connection. The replication stream
 * of a master has one order: a replica that acknowledged this write has all earlier writes of all
 * connections, and the answer tells only of those. The link proves that neither the connection nor
 * the master's history changed between batch and WAIT; our connections never reconnect. Only then
 * is the answer believed. Too few replicas, a connection that ends, a time-out, a master that
 * became a replica: each makes the answer unknown, and the command may be repeated.
 *
 * Commands that are pipelined behind WAIT stall with it. So the connection is our own, and batches
 * that come during a WAIT share the next round: batches, WAIT, next batches. All batches of the
 * store use this connection, so that they keep their order.
 */
import { ReplicationError, type StoreError } from "../../errors/index.js";
import type { Timers } from "../../time/timers.js";
import type { Driver, OwnConnection } from "../redis-client/client.js";
import { isNoScript, storeError } from "../redis-client/errors.js";
import type { ReplicaConnection } from "./replica-connection.js";

/** The answer to a batch. */
export interface Replicated {
  readonly raw: unknown;
  /** Names the connection, and the history of the server's data, that the answer comes from. */
  readonly link: string;
  /** Why the answer must not be believed; null if it may be. Does not reject. */
  readonly doubt: Promise<StoreError | null>;
}

interface Batch {
  readonly args: readonly string[];
  readonly isBelieved: boolean;
  resolve(replicated: Replicated): void;
  reject(error: unknown): void;
}

export class Replication {
  readonly #driver: Driver;
  readonly #timers: Timers;
  readonly #key: string;
  readonly #replicas: number;
  readonly #timeoutMs: number;
  #batches: Batch[] = [];
  #connection: OwnConnection | null = null;
  #link: ReplicaConnection | null = null;
  #isBusy = false;
  #isClosed = false;

  /** `key` stands for all keys of its slot. */
  constructor(
    driver: Driver,
    timers: Timers,
    key: string,
    { replicas, replicaTimeoutMs }: { replicas: number; replicaTimeoutMs: number },
  ) {
    this.#driver = driver;
    this.#timers = timers;
    this.#key = key;
    this.#replicas = replicas;
    this.#timeoutMs = replicaTimeoutMs;
  }

  /** Runs a batch, which must write if `isBelieved`. Resolves before the replicas have it. */
  run(args: readonly string[], isBelieved: boolean): Promise<Replicated> {
    return new Promise((resolve, reject) => {
      this.#batches.push({ args, isBelieved, resolve, reject });
      if (this.#isBusy) return;
      this.#isBusy = true;
      this.#timers.soon(() => void this.#runAll());
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#drop();
  }

  async #runAll(): Promise<void> {
    while (this.#batches.length > 0) {
      const batches = this.#batches;
      this.#batches = [];
      try {
        this.#link ??= await this.#open();
        await this.#round(this.#link, batches);
      } catch (error) {
        this.#drop();
        for (const { reject } of batches) reject(error);
      }
    }
    this.#isBusy = false;
  }

  /** Sends the batches and a WAIT. Resolves when all of them are answered. */
  async #round(link: ReplicaConnection, batches: readonly Batch[]): Promise<void> {
    const answers = batches.map(({ args }) => link.send(args));
    const isBelieved = batches.some((batch) => batch.isBelieved);
    const doubt = isBelieved ? this.#doubt(link) : Promise.resolve(null);
    const delivered = batches.map(async ({ resolve, reject }, at) => {
      try {
        resolve({ raw: await answers[at], link: link.id, doubt });
        return null;
      } catch (error) {
        reject(error);
        return error;
      }
    });
    const failures = [...(await Promise.all(delivered)), await doubt];
    // A server that refuses may have become a replica, or may no longer serve the key.
    if (!failures.every(isHarmless)) this.#drop();
  }

  async #doubt(link: ReplicaConnection): Promise<StoreError | null> {
    try {
      const count = await link.count(this.#replicas);
      if (count >= this.#replicas) return null;
      return new ReplicationError(this.#replicas, count, this.#timeoutMs, { store: "redis" });
    } catch (error) {
      return storeError(error, "redis");
    }
  }

  async #open(): Promise<ReplicaConnection> {
    // Only stores with replicas need this.
    const { ReplicaConnection } = await import("./replica-connection.js");
    const connection = await this.#driver.open(this.#key);
    this.#connection = connection;
    if (this.#isClosed) this.#drop();
    connection.onClose(() => {
      if (this.#connection === connection) this.#drop();
    });
    const key = this.#driver.keyPrefix + this.#key;
    const link = new ReplicaConnection(connection, this.#timers, key, this.#timeoutMs);
    await link.prepare();
    return link;
  }

  #drop(): void {
    this.#connection?.close();
    this.#connection = null;
    this.#link = null;
  }
}

/** Whether the link can be used again after this failure. */
function isHarmless(failure: unknown): boolean {
  return failure === null || failure instanceof ReplicationError || isNoScript(failure);
}
