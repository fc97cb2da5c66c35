/**
 * One connection to a member of etcd, for all calls to it.
 *
 * The connection never keeps the process alive: each call has a time limit, which does. A peer that
 * is gone without a sign is found by pings. They are sent while a call is open, and after a call
 * that got no answer. A connection that takes no new calls still serves the open ones.
 */
import { type ClientHttp2Session, connect, constants } from "node:http2";
import type { Port } from "../../time/port.js";
import type { Timer } from "../../time/timers.js";
import type { TlsFiles } from "../store-url.js";
import { type CallListener, GrpcCall } from "./grpc-call.js";

/** There is no connection: nothing was sent. */
export class NotConnectedError extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = "NotConnectedError";
  }
}

/** The headers of a call that are for etcd; without a token where etcd has no users. */
export interface Metadata {
  readonly token?: string;
  readonly hasleader?: "true";
}

const OPEN_MS = 5_000;
const PING_EVERY_MS = 10_000;
const PING_ANSWER_MS = 5_000;
const LEAST_PING_GAP_MS = 6_000;
/** The last part of a limit: after the event loop was blocked, answers are read in this time. */
const LAST_PART_MS = 500;
const SETTINGS = { enablePush: false };
/** Above this, Node refuses calls. The default of 10 MB is less than 20,000 open calls need. */
const MOST_MEGABYTES = 1_000;
/** A connection has numbers for 2^30 calls. */
const OUT_OF_STREAMS = "ERR_HTTP2_OUT_OF_STREAMS";

export class GrpcConnection {
  /** Resolves when the member has answered in HTTP/2; rejects when it does not. */
  readonly opened: Promise<void>;
  readonly #session: ClientHttp2Session;
  readonly #authority: string;
  readonly #scheme: string;
  readonly #port: Port;
  #isOpen = false;
  #openCalls = 0;
  #nextPing: Timer | undefined;
  #pingedMs = Number.NEGATIVE_INFINITY;
  /** The end of the wait for the answer to a ping, or for the member to answer at all. */
  #limit: Timer | undefined;

  constructor(authority: string, tls: TlsFiles | null, port: Port) {
    this.#authority = authority;
    this.#scheme = tls ? "https" : "http";
    this.#port = port;
    const session = connect(`${this.#scheme}://${authority}`, {
      ...tls,
      settings: SETTINGS,
      maxSessionMemory: MOST_MEGABYTES,
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
    // The calls that waited for the connection may be over.
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
    this.#nextPing ??= this.#port.timers.after(PING_EVERY_MS, () => this.#onPingDue());
    return new GrpcCall(stream, listener, (code) => {
      this.#openCalls -= 1;
      // The peer ended the call by itself: it is there, whenever its answer to a ping comes.
      if (stream.rstCode === constants.NGHTTP2_NO_ERROR) this.#endLimit();
      if (code === OUT_OF_STREAMS) this.#session.close();
    });
  }

  /** Ends the connection, unless its peer answers soon. etcd hangs up on too many pings. */
  ping(): void {
    const nowMs = this.#port.clock.nowMs();
    if (!this.#isOpen || this.isDestroyed || nowMs < this.#pingedMs + LEAST_PING_GAP_MS) return;
    this.#pingedMs = nowMs;
    this.#startLimit(PING_ANSWER_MS);
    const onAnswer = (): void => this.#endLimit();
    // Node sends no ping on a connection that takes no new calls; settings are answered, too.
    if (this.isOver) this.#session.settings(SETTINGS, onAnswer);
    else this.#session.ping(onAnswer);
  }

  close(): void {
    this.#session.destroy();
  }

  #onPingDue(): void {
    this.#nextPing = undefined;
    if (this.#openCalls === 0 || this.isDestroyed) return;
    this.#nextPing = this.#port.timers.after(PING_EVERY_MS, () => this.#onPingDue());
    this.ping();
  }

  /** After a sleep of the machine, an earlier ping may still wait for its answer. */
  #startLimit(limitMs: number): void {
    const { timers } = this.#port;
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
