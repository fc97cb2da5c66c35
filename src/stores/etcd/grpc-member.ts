import { Backoff } from "../../time/backoff.js";
import type { Port } from "../../time/port.js";
import { TimeLimitError, within } from "../../time/timers.js";
import type { TlsFiles } from "../store-url.js";
import { GrpcConnection, NotConnectedError } from "./grpc-connection.js";

const RETRY_MS = { firstMs: 100, longestMs: 1_000 };
/**
 * A call waits for a connection no longer than this; the connection may open after that. It waits
 * in two parts: after the event loop was blocked, answers that have arrived are read in the second.
 */
const WAITS_MS = [500, 500];

/** A member of etcd, and the connection to it. */
export class GrpcMember {
  readonly #authority: string;
  readonly #tls: TlsFiles | null;
  readonly #port: Port;
  readonly #backoff: Backoff;
  #connection: GrpcConnection | null = null;
  /** Connections that take no new calls, but have open ones. */
  #older: GrpcConnection[] = [];
  /** The wait for that connection: many calls share it, and its timer. */
  #waiting: Promise<void> | null = null;
  #failure: unknown = null;
  /** No connection is tried before this. */
  #retryMs = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  /** `authority`: host and port. */
  constructor(authority: string, tls: TlsFiles | null, port: Port) {
    this.#authority = authority;
    this.#tls = tls;
    this.#port = port;
    this.#backoff = new Backoff(port.random, RETRY_MS);
  }

  /** The connection, if calls can be sent. */
  get ready(): GrpcConnection | null {
    return this.#connection?.isOpen ? this.#connection : null;
  }

  /** Whether the connection is the latest one to this member. */
  has(connection: GrpcConnection): boolean {
    return this.#connection === connection;
  }

  /** Throws the last failure while it is too early to try again. */
  async connect(): Promise<GrpcConnection> {
    const { clock } = this.#port;
    if (this.#isClosed) throw new NotConnectedError("the client is closed");
    if (!this.#connection || this.#connection.isOver) {
      if (clock.nowMs() < this.#retryMs) throw this.#failure;
      if (this.#connection) this.#older.push(this.#connection);
      this.#older = this.#older.filter(({ isDestroyed }) => !isDestroyed);
      this.#connection = this.#open();
      this.#waiting = null;
    }
    const connection = this.#connection;
    this.#waiting ??= this.#wait(connection.opened).finally(() => {
      this.#waiting = null;
    });
    await this.#waiting;
    return connection;
  }

  close(): void {
    this.#isClosed = true;
    for (const connection of this.#older) connection.close();
    this.#connection?.close();
  }

  async #wait(opened: Promise<void>): Promise<void> {
    for (const waitMs of WAITS_MS) {
      try {
        return await within(this.#port.timers, waitMs, opened);
      } catch (error) {
        if (!(error instanceof TimeLimitError)) throw error;
      }
    }
    throw new NotConnectedError("no answer");
  }

  #open(): GrpcConnection {
    const { clock } = this.#port;
    const connection = new GrpcConnection(this.#authority, this.#tls, this.#port);
    connection.opened.then(
      () => this.#backoff.reset(),
      (error) => {
        this.#failure = error;
        this.#retryMs = clock.nowMs() + this.#backoff.nextMs();
      },
    );
    return connection;
  }
}
