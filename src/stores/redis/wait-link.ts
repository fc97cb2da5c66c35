import { StoreError } from "../../errors.js";
import { type Timers, within } from "../../time/timers.js";
import type { OwnConnection } from "../redis-client/driver.js";

/** The server ends a WAIT by itself; this is for a server that does not answer at all. */
const SILENCE_MS = 1_000;
/**
 * A replica that is counted right after a write shows that WAIT ran on another connection. With
 * Redis 7.0 such a connection is one command late: it showed in 13 to 15 of the 16 probes of each
 * of 100 links. On the connection itself it showed in 1 of the 576 probes of 36 links, on a busy
 * machine: a replica can answer at the wrong moment.
 */
const PROBES = 16;
const MOST_EARLY = 3;
/** Writes the last token once more: always a write, at maxmemory too, and it changes nothing. */
const WRITE = `redis.call('HDEL', KEYS[1], '?')
return redis.call('HSET', KEYS[1], '', redis.call('HGET', KEYS[1], '') or '0')`;

/**
 * One connection to one master whose WAIT is known to wait. Every count comes with the number that
 * the server gave to the connection, and with the history of the master's data (`master_replid`),
 * which changes when a replica becomes a master. Both must be as they were at the start: then WAIT
 * ran on the connection of all that was sent before, and the master has not lost any of it.
 */
export class WaitLink {
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

  /** Which connection to which history of which server this is. */
  get id(): string {
    return this.#id;
  }

  /** Must be called first. Throws where WAIT does not wait. */
  async prepare(): Promise<void> {
    const [id] = await Promise.all([this.#identify(), this.#prove()]);
    if (id === "") throw refusal("INFO does not name a master and its master_replid");
    this.#id = id;
  }

  send(args: readonly string[]): Promise<unknown> {
    return within(this.#timers, this.#timeoutMs + SILENCE_MS, this.#connection.send(args));
  }

  /** How many replicas have all that this connection has written; waits for `replicas` of them. */
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

  /** Empty for a server that is no master. */
  async #identify(): Promise<string> {
    const client = this.send(["CLIENT", "ID"]);
    const [number, answer] = await Promise.all([client, this.send(["INFO", "replication"])]);
    const [, history] = /^role:master\s[\s\S]*^master_replid:(\w+)/m.exec(String(answer)) ?? [];
    return history === undefined ? "" : `${history}/${number}`;
  }

  /**
   * A replica that has acknowledged a write is not counted right after the next one, for it cannot
   * have answered in between; and it is counted without a wait once it has acknowledged that, too.
   * An answer that is made up, or that comes by a connection without these writes, is not both.
   * Without a replica there is nothing to compare.
   */
  async #prove(): Promise<void> {
    const write = ["EVAL", WRITE, "1", this.#key];
    let early = 0;
    let isCounted = false;
    for (let probe = 0; probe < PROBES; probe += 1) {
      // The server takes the second write and the WAIT behind it in one go, after the first WAIT.
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
    this.#isProven = isCounted && early <= MOST_EARLY;
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
