import type { Port } from "../../time/port.js";
import { within } from "../../time/timers.js";
import type { Driver, OwnConnection } from "./driver.js";

const FIRST_RETRY_MS = 50;
const LONGEST_RETRY_MS = 2_000;
/** A connection that lost its other end says nothing by itself. */
const PING_EVERY_MS = 10_000;
const PING_LIMIT_MS = 5_000;

/**
 * Keeps one channel subscribed on a connection of its own, for as long as the store is open.
 * Messages of the times between are lost; `onUp` tells when such a time is over, the first as well.
 */
export class Subscription {
  readonly #driver: Driver;
  readonly #port: Port;
  readonly #channel: string;
  readonly #onMessage: (message: string) => void;
  readonly #onUp: () => void;
  readonly #prepare: (connection: OwnConnection) => Promise<unknown>;
  #connection: OwnConnection | null = null;
  #isClosed = false;

  constructor(
    driver: Driver,
    port: Port,
    channel: string,
    onMessage: (message: string) => void,
    onUp: () => void,
    /** What else is done on every new connection; its first request goes out before all others. */
    prepare: (connection: OwnConnection) => Promise<unknown> = async () => {},
  ) {
    this.#driver = driver;
    this.#port = port;
    this.#channel = channel;
    this.#onMessage = onMessage;
    this.#onUp = onUp;
    this.#prepare = prepare;
    void this.#keepUp();
  }

  close(): void {
    this.#isClosed = true;
    this.#connection?.close();
  }

  async #keepUp(): Promise<void> {
    for (let pauseMs = FIRST_RETRY_MS; !this.#isClosed; ) {
      try {
        await this.#once(() => {
          pauseMs = FIRST_RETRY_MS;
        });
      } catch {
        // Whoever waits is told by touches meanwhile; there is nobody to throw to.
      }
      if (this.#isClosed) return;
      await new Promise<void>((resume) => this.#port.timers.after(pauseMs, resume));
      pauseMs = Math.min(2 * pauseMs, LONGEST_RETRY_MS);
    }
  }

  /** One life of the connection, to its end. */
  async #once(onUp: () => void): Promise<void> {
    const connection = await this.#driver.open(null);
    this.#connection = connection;
    if (this.#isClosed) return connection.close();
    const closed = new Promise<void>((resolve) => connection.onClose(resolve));
    try {
      const subscribed = this.#subscribe(connection);
      await Promise.race([within(this.#port.timers, PING_LIMIT_MS, subscribed), rejected(closed)]);
      onUp();
      this.#onUp();
      void this.#watch(connection, closed);
      await closed;
    } finally {
      this.#connection = null;
      connection.close();
    }
  }

  /** Whoever listens does not wait for the rest: what is told meanwhile would be missed. */
  #subscribe(connection: OwnConnection): Promise<unknown> {
    this.#prepare(connection).catch(() => {});
    return connection.subscribe(this.#channel, this.#onMessage);
  }

  async #watch(connection: OwnConnection, closed: Promise<void>): Promise<void> {
    let isOver = false;
    void closed.then(() => {
      isOver = true;
    });
    while (!isOver && !this.#isClosed) {
      await new Promise<void>((resume) => this.#port.timers.after(PING_EVERY_MS, resume));
      try {
        await within(this.#port.timers, PING_LIMIT_MS, connection.send(["PING"]));
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
