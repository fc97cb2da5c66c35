import { StoreError } from "../../errors/index.js";
import { type Timers, within } from "../../time/timers.js";
import type { OwnConnection } from "../redis-client/client.js";

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
