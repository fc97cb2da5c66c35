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
import { ReplicationError, StoreError } from "../../errors/index.js";
import { type Timers, within } from "../../time/timers.js";
import type { Driver, OwnConnection } from "../redis-client/client.js";
import { isNoScript, storeError } from "../redis-client/errors.js";

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

/** How much longer than its own time-out a WAIT may take before the server counts as silent. */
const SILENCE_MS = 1_000;
/**
 * If a replica is counted right after a write, WAIT ran on another connection. With Redis 7.0 and
 * WAIT on another connection this showed in 13 to 15 of the 16 probes of each of 100 links. With
 * WAIT on the right connection it showed in 1 of the 576 probes of 36 links, on a busy machine: a
 * replica can acknowledge at the wrong moment.
 */
const PROBES = 16;
const MAX_EARLY = 3;
/**
 * Always a write, at maxmemory too: Redis lets a script write after a delete. The field is no name
 * of a lock, and it is gone at the end of the script: nothing has changed then.
 */
const WRITE = `redis.call('HDEL', KEYS[1], '?')
redis.call('HSET', KEYS[1], '?', '')
return redis.call('HDEL', KEYS[1], '?')`;

/**
 * One connection to one master whose WAIT is known to wait. With every count the server names the
 * connection (`CLIENT ID`) and the history of its data (`master_replid`), which changes when a
 * replica becomes a master. Both must be as they were at the start. Then WAIT ran on the connection
 * that sent the writes, and the master has lost none of them.
 */
export class ReplicaConnection {
  readonly #connection: OwnConnection;
  readonly #timers: Timers;
  readonly #key: string;
  readonly #timeoutMs: number;
  #id = "";
  #isProven = false;

  constructor(connection: OwnConnection, timers: Timers, key: string, timeoutMs: number) {
    this.#connection = connection;
    this.#timers = timers;
    this.#key = key;
    this.#timeoutMs = timeoutMs;
  }

  /** Names the connection and the history of the server's data. */
  get id(): string {
    return this.#id;
  }

  /** Must be called first. Throws if WAIT does not wait. */
  async prepare(): Promise<void> {
    const [id] = await Promise.all([this.#identify(), this.#prove()]);
    if (id === "") throw refusal("INFO does not name a master and its master_replid");
    this.#id = id;
  }

  send(args: readonly string[]): Promise<unknown> {
    return within(this.#timers, this.#timeoutMs + SILENCE_MS, this.#connection.send(args));
  }

  /** Waits for `replicas` replicas, and gives how many have all writes of this connection. */
  async count(replicas: number): Promise<number> {
    const counting = this.#wait(replicas, this.#timeoutMs);
    const [count, id] = await Promise.all([counting, this.#identify()]);
    if (id !== this.#id) {
      const text = "Redis changed its role, or the connection, while it waited for its replicas.";
      throw new StoreError(text, { outcome: "unknown", store: "redis" });
    }
    if (count === 0 || this.#isProven) return count;
    await this.#prove();
    return this.#isProven ? this.count(replicas) : 0;
  }

  async #wait(replicas: number, timeoutMs: number): Promise<number> {
    return Number(await this.send(["WAIT", `${replicas}`, `${timeoutMs}`]));
  }

  /** Empty if the server is no master. */
  async #identify(): Promise<string> {
    const client = this.send(["CLIENT", "ID"]);
    const [number, answer] = await Promise.all([client, this.send(["INFO", "replication"])]);
    const [, history] = /^role:master\s[\s\S]*^master_replid:(\w+)/m.exec(String(answer)) ?? [];
    return history === undefined ? "" : `${history}/${number}`;
  }

  /**
   * A replica that has acknowledged a write must not be counted right after the next write, because
   * it cannot have acknowledged that yet. Once it has, it must be counted without a wait. An answer
   * that is made up fails one of these checks, and so does the answer of a connection without these
   * writes. Without a replica there is nothing to compare.
   */
  async #prove(): Promise<void> {
    const write = ["EVAL", WRITE, "1", this.#key];
    let early = 0;
    let isCounted = false;
    for (let probe = 0; probe < PROBES; probe += 1) {
      // After the first WAIT the server runs the second write and the WAIT behind it together.
      const [, acknowledged, , afterWrite] = await Promise.all([
        this.send(write),
        this.#wait(1, this.#timeoutMs),
        this.send(write),
        this.#wait(0, 1),
      ]);
      if (acknowledged === 0) return;
      const counts = [this.#wait(1, this.#timeoutMs), this.#wait(0, 1)];
      const [, again = 0] = await Promise.all(counts);
      if (afterWrite > 0) early += 1;
      if (again > 0) isCounted = true;
    }
    this.#isProven = isCounted && early <= MAX_EARLY;
    if (this.#isProven) return;
    throw refusal("WAIT does not wait for what its own connection wrote");
  }
}

function refusal(what: string): StoreError {
  const advice = "a proxy may be in between. Connect to the server itself, or set replicas to 0";
  return new StoreError(`Redis cannot tell what its replicas have: ${what}; ${advice}.`, {
    outcome: "not_applied",
    retryable: false,
    store: "redis",
  });
}
