/**
 * HTTP/2 connections to the members of etcd: one for all calls to a member.
 *
 * A connection never keeps the process alive: each call has a time limit, which does. Pings find a
 * peer that is gone without a sign. They are sent while a call is open, and after a call that got
 * no answer. A connection that takes no new calls still serves the open ones.
 */
import { type ClientHttp2Session, connect, constants } from "node:http2";
import { Backoff } from "../../../time/backoff.js";
import type { Runtime } from "../../../time/runtime.js";
import { TimeLimitError, type Timer, within } from "../../../time/timers.js";
import type { TlsFiles } from "../../store-url.js";
import { type CallListener, GrpcCall } from "./grpc.js";

/** There is no connection, so nothing was sent. */
export class NotConnectedError extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = "NotConnectedError";
  }
}

/** The headers of a call that etcd reads. */
export interface Metadata {
  readonly token?: string;
  readonly hasleader?: "true";
}

const OPEN_MS = 5_000;
const PING_EVERY_MS = 10_000;
const PING_ANSWER_MS = 5_000;
const MIN_PING_GAP_MS = 6_000;
/**
 * The end of each limit, on a timer of its own: after the event loop was blocked, the answers that
 * have arrived are read before it fires.
 */
const LAST_PART_MS = 500;
const SETTINGS = { enablePush: false };
/** Node refuses calls beyond this. 20,000 open calls need more than its default of 10 MB. */
const MAX_MEGABYTES = 1_000;
/** A connection can number 2^30 calls. */
const OUT_OF_STREAMS = "ERR_HTTP2_OUT_OF_STREAMS";

export class GrpcConnection {
  /** Resolves when the member answers in HTTP/2; rejects if it does not. */
  readonly opened: Promise<void>;
  readonly #session: ClientHttp2Session;
  readonly #authority: string;
  readonly #scheme: string;
  readonly #runtime: Runtime;
  #isOpen = false;
  #openCalls = 0;
  #nextPing: Timer | undefined;
  #pingedMs = Number.NEGATIVE_INFINITY;
  /** Ends the wait for the answer to a ping, or for the first answer of the member. */
  #limit: Timer | undefined;

  constructor(authority: string, tls: TlsFiles | null, runtime: Runtime) {
    this.#authority = authority;
    this.#scheme = tls ? "https" : "http";
    this.#runtime = runtime;
    const session = connect(`${this.#scheme}://${authority}`, {
      ...tls,
      settings: SETTINGS,
      maxSessionMemory: MAX_MEGABYTES,
    });
    this.#session = session;
    session.unref();
    this.#startLimit(OPEN_MS);
    this.opened = new Promise((resolve, reject) => {
      let reason = "Failed to connect";
      session.on("error", ({ message, code }: NodeJS.ErrnoException) => {
        // A host name with several addresses fails with one error for all of them, without a text.
        reason = message || `connect ${code} ${authority}`;
      });
      session.once("remoteSettings", () => {
        this.#isOpen = true;
        this.#endLimit();
        resolve();
      });
      session.once("close", () => {
        this.#endLimit();
        this.#nextPing?.cancel();
        reject(new NotConnectedError(reason));
      });
    });
    // The calls that waited for the connection may have ended.
    this.opened.catch(() => {});
  }

  /** Whether calls can be sent. */
  get isOpen(): boolean {
    return this.#isOpen && !this.isOver;
  }

  /** Whether it takes no new calls; calls may still be open. */
  get isOver(): boolean {
    return this.#session.closed || this.#session.destroyed;
  }

  get isDestroyed(): boolean {
    return this.#session.destroyed;
  }

  start(path: string, metadata: Metadata, listener: CallListener): GrpcCall {
    const stream = this.#session.request({
      ":method": "POST",
      ":scheme": this.#scheme,
      ":authority": this.#authority,
      ":path": path,
      te: "trailers",
      "content-type": "application/grpc",
      "user-agent": "holdfast",
      ...metadata,
    });
    this.#openCalls += 1;
    this.#nextPing ??= this.#runtime.timers.after(PING_EVERY_MS, () => this.#onPingDue());
    return new GrpcCall(stream, listener, (code) => {
      this.#openCalls -= 1;
      // The peer ended the call itself, so it is alive even if its answer to a ping is late.
      if (stream.rstCode === constants.NGHTTP2_NO_ERROR) this.#endLimit();
      if (code === OUT_OF_STREAMS) this.#session.close();
    });
  }

  /** Ends the connection unless its peer answers soon. etcd closes one with too many pings. */
  ping(): void {
    const nowMs = this.#runtime.clock.nowMs();
    if (!this.#isOpen || this.isDestroyed || nowMs < this.#pingedMs + MIN_PING_GAP_MS) return;
    this.#pingedMs = nowMs;
    this.#startLimit(PING_ANSWER_MS);
    const onAnswer = (): void => this.#endLimit();
    // Node sends no ping on a connection that takes no new calls. Settings are answered, too.
    if (this.isOver) this.#session.settings(SETTINGS, onAnswer);
    else this.#session.ping(onAnswer);
  }

  close(): void {
    // As for a stream: see `GrpcCall.cancel`.
    setImmediate(() => this.#session.destroy());
  }

  #onPingDue(): void {
    this.#nextPing = undefined;
    if (this.#openCalls === 0 || this.isDestroyed) return;
    this.#nextPing = this.#runtime.timers.after(PING_EVERY_MS, () => this.#onPingDue());
    this.ping();
  }

  /** After a sleep of the machine, an earlier ping may still wait for its answer. */
  #startLimit(limitMs: number): void {
    const { timers } = this.#runtime;
    this.#endLimit();
    this.#limit = timers.after(limitMs - LAST_PART_MS, () => {
      this.#limit = timers.after(LAST_PART_MS, () => this.#session.destroy());
    });
  }

  #endLimit(): void {
    this.#limit?.cancel();
    this.#limit = undefined;
  }
}

const RETRY_MS = { firstMs: 100, longestMs: 1_000 };
/**
 * A call waits this long for a connection, which may open later. It waits in two parts: after the
 * event loop was blocked, answers that have arrived are read in the second.
 */
const WAITS_MS = [500, 500];

/** A member of etcd, and the connections to it. */
export class GrpcMember {
  readonly #authority: string;
  readonly #tls: TlsFiles | null;
  readonly #runtime: Runtime;
  readonly #backoff: Backoff;
  #connection: GrpcConnection | null = null;
  /** Connections that take no new calls but still serve open ones. */
  #older: GrpcConnection[] = [];
  /** The wait for the connection to open, which all calls share. */
  #waiting: Promise<void> | null = null;
  #failure: unknown = null;
  /** When the next connection may be tried. */
  #retryMs = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  /** `authority`: host and port. */
  constructor(authority: string, tls: TlsFiles | null, runtime: Runtime) {
    this.#authority = authority;
    this.#tls = tls;
    this.#runtime = runtime;
    this.#backoff = new Backoff(runtime.random, RETRY_MS);
  }

  /** The connection, if calls can be sent. */
  get ready(): GrpcConnection | null {
    return this.#connection?.isOpen ? this.#connection : null;
  }

  /** Whether the connection is the latest one to this member. */
  has(connection: GrpcConnection): boolean {
    return this.#connection === connection;
  }

  /** Throws the last failure if it is too early to try again. */
  async connect(): Promise<GrpcConnection> {
    const { clock } = this.#runtime;
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
        return await within(this.#runtime.timers, waitMs, opened);
      } catch (error) {
        if (!(error instanceof TimeLimitError)) throw error;
      }
    }
    throw new NotConnectedError("no answer");
  }

  #open(): GrpcConnection {
    const { clock } = this.#runtime;
    const connection = new GrpcConnection(this.#authority, this.#tls, this.#runtime);
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
