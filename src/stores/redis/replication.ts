import { ReplicationError } from "../../errors.js";
import type { Port } from "../../time/port.js";
import { TimeLimitError, within } from "../../time/timers.js";
import type { Driver, OwnConnection } from "./driver.js";

/** The server answers in time by itself; this is for one that does not answer at all. */
const SILENCE_MS = 1_000;

interface Asker {
  readonly run: string;
  resolve(): void;
  reject(error: unknown): void;
}

/**
 * Waits until enough replicas have what a server wrote. WAIT stalls its connection, so it has its
 * own; it counts only what its own connection has seen, so a command goes before it; and it must
 * be asked of the very run of the server that wrote, or it would vouch for data that a new master
 * never had. Those who come while one WAIT is under way share the next.
 */
export class Replication {
  readonly #driver: Driver;
  readonly #port: Port;
  readonly #key: string;
  readonly #replicas: number;
  readonly #timeoutMs: number;
  #askers: Asker[] = [];
  #connection: Promise<OwnConnection> | null = null;
  #isAsking = false;
  #isClosed = false;

  constructor(driver: Driver, port: Port, key: string, replicas: number, timeoutMs: number) {
    this.#driver = driver;
    this.#port = port;
    this.#key = key;
    this.#replicas = replicas;
    this.#timeoutMs = timeoutMs;
  }

  /** Resolves when the replicas have all that `run` wrote before this call. */
  reached(run: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#askers.push({ run, resolve, reject });
      if (!this.#isAsking) void this.#askAll();
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#drop();
  }

  async #askAll(): Promise<void> {
    this.#isAsking = true;
    while (this.#askers.length > 0) {
      const askers = this.#askers;
      this.#askers = [];
      try {
        const { run, count } = await this.#ask();
        for (const asker of askers) {
          if (asker.run === run && count >= this.#replicas) asker.resolve();
          else asker.reject(this.#error(asker.run === run ? count : 0));
        }
        // Another server answers here than there: next time, whoever serves the key by then.
        if (askers.some((asker) => asker.run !== run)) this.#drop();
      } catch (cause) {
        this.#drop();
        for (const asker of askers) asker.reject(this.#error(0, cause));
      }
    }
    this.#isAsking = false;
  }

  /** Asks on the connection there is; when that has ended meanwhile, on another. */
  async #ask(): Promise<{ run: string; count: number }> {
    const isNew = this.#connection === null;
    try {
      return await this.#askOnce();
    } catch (error) {
      this.#drop();
      if (isNew || this.#isClosed || error instanceof TimeLimitError) throw error;
      return await this.#askOnce();
    }
  }

  async #askOnce(): Promise<{ run: string; count: number }> {
    this.#connection ??= this.#driver.open(this.#key);
    const connection = await this.#connection;
    if (this.#isClosed) connection.close();
    const wait = ["WAIT", `${this.#replicas}`, `${this.#timeoutMs}`];
    const answers = Promise.all([connection.send(["INFO", "server"]), connection.send(wait)]);
    const limitMs = this.#timeoutMs + SILENCE_MS;
    const [info, count] = await within(this.#port.timers, limitMs, answers);
    return { run: /run_id:(\w+)/.exec(String(info))?.[1] ?? "", count: Number(count) };
  }

  #drop(): void {
    this.#connection?.then((connection) => connection.close()).catch(() => {});
    this.#connection = null;
  }

  #error(acknowledged: number, cause?: unknown): ReplicationError {
    return new ReplicationError(this.#replicas, acknowledged, this.#timeoutMs, {
      store: "redis",
      ...(cause === undefined ? {} : { cause }),
    });
  }
}
