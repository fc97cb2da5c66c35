import { Backoff } from "../../time/backoff.js";
import type { Port } from "../../time/port.js";
import { TimeLimitError, within } from "../../time/timers.js";
import type { TlsFiles } from "../store-url.js";
import { GrpcConnection, NotConnectedError } from "./grpc-connection.js";

const RETRY_MS = { firstMs: 100, longestMs: 1_000 };
/** A call waits for a connection no longer than this; the connection may open after that. */
const WAIT_MS = 1_000;

/** A member of etcd, and the connection to it. */
export class GrpcMember {
  readonly #authority: string;
  readonly #tls: TlsFiles | null;
  readonly #port: Port;
  readonly #backoff: Backoff;
  #connection: GrpcConnection | null = null;
  /** Connections that take no new calls, but have open ones. */
  #older: GrpcConnection[] = [];
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
    const { clock, timers } = this.#port;
    if (this.#isClosed) throw new NotConnectedError("the client is closed");
    if (!this.#connection || this.#connection.isOver) {
      if (clock.nowMs() < this.#retryMs) throw this.#failure;
      if (this.#connection) this.#older.push(this.#connection);
      this.#older = this.#older.filter(({ isDestroyed }) => !isDestroyed);
      this.#connection = this.#open();
    }
    const connection = this.#connection;
    await within(timers, WAIT_MS, connection.opened).catch((error) => {
      throw error instanceof TimeLimitError ? new NotConnectedError("no answer") : error;
    });
    return connection;
  }

  close(): void {
    this.#isClosed = true;
    for (const connection of this.#older) connection.close();
    this.#connection?.close();
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
