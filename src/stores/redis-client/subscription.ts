import { Backoff } from "../../time/backoff.js";
import { pause } from "../../time/pause.js";
import type { Runtime } from "../../time/runtime.js";
import { within } from "../../time/timers.js";
import type { Driver, OwnConnection } from "./client.js";

const PAUSES = { firstMs: 50, longestMs: 2_000 };
/** A connection whose other end is gone shows no error by itself. */
const PING_EVERY_MS = 10_000;
const PING_LIMIT_MS = 5_000;

export interface SubscriptionRules {
  readonly channel: string;
  onMessage(message: string): void;
  /** The subscription is up, for the first time or again. Messages from before that are lost. */
  onUp(): void;
  /** Called on every new connection, not awaited: its first request goes out before all else. */
  prepare?(connection: OwnConnection): Promise<unknown>;
}

/** Keeps one channel subscribed on a connection of its own, for as long as the store is open. */
export class Subscription {
  readonly #driver: Driver;
  readonly #runtime: Runtime;
  readonly #rules: SubscriptionRules;
  readonly #pauses: Backoff;
  #connection: OwnConnection | null = null;
  #isClosed = false;

  constructor(driver: Driver, runtime: Runtime, rules: SubscriptionRules) {
    this.#driver = driver;
    this.#runtime = runtime;
    this.#rules = rules;
    this.#pauses = new Backoff(runtime.random, PAUSES);
  }

  /** Connects and subscribes in the background. */
  start(): void {
    void this.#keepUp();
  }

  close(): void {
    this.#isClosed = true;
    this.#connection?.close();
  }

  async #keepUp(): Promise<void> {
    while (!this.#isClosed) {
      try {
        await this.#once();
      } catch {
        // Without the subscription, waiters still ask the store from time to time.
      }
      if (this.#isClosed) return;
      await pause(this.#runtime.timers, this.#pauses.nextMs());
    }
  }

  /** One connection, from its start to its end. */
  async #once(): Promise<void> {
    const connection = await this.#driver.open(null);
    this.#connection = connection;
    if (this.#isClosed) return connection.close();
    const closed = new Promise<void>((resolve) => connection.onClose(resolve));
    try {
      const subscribed = this.#subscribe(connection);
      await Promise.race([
        within(this.#runtime.timers, PING_LIMIT_MS, subscribed),
        rejected(closed),
      ]);
      this.#pauses.reset();
      this.#rules.onUp();
      void this.#watch(connection, closed);
      await closed;
    } finally {
      this.#connection = null;
      connection.close();
    }
  }

  /** Does not wait for `prepare`: messages would be lost meanwhile. */
  #subscribe(connection: OwnConnection): Promise<unknown> {
    const { channel, onMessage, prepare } = this.#rules;
    prepare?.(connection).catch(() => {});
    return connection.subscribe(channel, onMessage);
  }

  async #watch(connection: OwnConnection, closed: Promise<void>): Promise<void> {
    let isOver = false;
    void closed.then(() => {
      isOver = true;
    });
    while (!isOver && !this.#isClosed) {
      await pause(this.#runtime.timers, PING_EVERY_MS);
      try {
        await within(this.#runtime.timers, PING_LIMIT_MS, connection.send(["PING"]));
      } catch {
        return connection.close();
      }
    }
  }
}

async function rejected(closed: Promise<void>): Promise<never> {
  await closed;
  throw new Error("The connection ended before it was subscribed.");
}
