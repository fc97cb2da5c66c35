/**
 * One connection to one server, for one session: it opens or resumes the session, sends requests in
 * their order and reads the replies in the same order. It is never reused: after its end, another
 * connection may resume the session.
 *
 * A caller may send before the session is open. The server reads such requests only after it has
 * opened or resumed the session, and never if it refuses to. So the reply to a request proves that
 * the session was opened or resumed on this very connection, before the request was done.
 *
 * Every request settles at the latest when the connection ends. The connection ends by itself when
 * the server is silent for two thirds of the timeout of the session, when bytes arrive that are no
 * reply, and when a reply does not belong to the oldest request. It keeps no process alive.
 */

import { connect } from "node:net";
import type { Runtime } from "../../../time/runtime.js";
import type { Timer } from "../../../time/timers.js";
import type { Address, TlsFiles } from "../../store-url.js";
import { type ErrorCode, type RequestOutcome, serverError, ZookeeperError } from "../errors.js";
import { FrameSplitter, JuteReader, JuteWriter } from "./jute.js";
import { PendingRequests, readHeader, requestFrame } from "./pending-requests.js";
import { type Credential, closeSession, Operation, type Request } from "./requests.js";
import {
  type OpenedSession,
  PingTimer,
  readSession,
  type SessionRequest,
  sessionFrame,
} from "./session.js";
import { WatchTable } from "./watch-table.js";

/** The settings that all connections of a client share. */
export interface ConnectionSettings {
  /** Null: connections are not encrypted. */
  readonly tls: TlsFiles | null;
  /** The path that all paths are below: "" or such as "/app". */
  readonly chroot: string;
  /** Proven to the server before the first request. */
  readonly credentials: readonly Credential[];
  /** Default: sockets of the system. The simulation has its own. */
  readonly openSocket?: OpenSocket;
}

/** The numbers of messages that belong to no request of a caller. */
const EVENT_XID = -1;
const PING_XID = -2;
const AUTH_XID = -4;
const SET_WATCHES_XID = -8;

/** A list of 500,000 children has about 30 MB. */
const MAX_REPLY_BYTES = 64 * 1024 * 1024;

const PING = new JuteWriter("").int(PING_XID).int(Operation.ping).frame();

export class Connection {
  readonly address: Address;
  /** Resolves when the server has opened or resumed the session and accepted the credentials. */
  readonly opened: Promise<OpenedSession>;
  /** Resolves with the reason when the connection has ended. Never rejects. */
  readonly ended: Promise<ZookeeperError>;
  readonly #settings: ConnectionSettings;
  readonly #request: SessionRequest;
  /** Written before the socket opens: a throw in an event of the socket would end the process. */
  readonly #sessionFrame: Buffer;
  readonly #runtime: Runtime;
  readonly #watches: WatchTable;
  readonly #pending: PendingRequests;
  readonly #splitter = new FrameSplitter(MAX_REPLY_BYTES);
  readonly #socket: ServerSocket;
  readonly #pings: PingTimer;
  readonly #openLimit: Timer;
  #isConnected = false;
  #isFlushPlanned = false;
  #lastZxid: bigint;
  #requestedMs = Number.NaN;
  #session: OpenedSession | null = null;
  /** How many credentials the server has accepted. */
  #proven = 0;
  #isOpened = false;
  #reason: ZookeeperError | null = null;
  #onOpened: (session: OpenedSession) => void = () => {};
  #onNotOpened: (reason: ZookeeperError) => void = () => {};
  #onEnded: (reason: ZookeeperError) => void = () => {};

  /** Begins to connect. `openMs`: the most time until the session is open. */
  constructor(
    address: Address,
    settings: ConnectionSettings,
    request: SessionRequest,
    { openMs, runtime }: { readonly openMs: number; readonly runtime: Runtime },
  ) {
    this.address = address;
    this.#settings = settings;
    this.#request = request;
    this.#sessionFrame = sessionFrame(request);
    this.#runtime = runtime;
    this.#lastZxid = request.lastZxid ?? 0n;
    this.#watches = request.watches ?? new WatchTable();
    this.#pending = new PendingRequests(settings.chroot, this.#watches);
    this.#pings = new PingTimer(runtime.timers, {
      ping: () => this.#socket.write(PING),
      onSilence: () =>
        this.#end("silent", "no sign of life for two thirds of the session's time-out"),
    });
    this.opened = new Promise((resolve, reject) => {
      this.#onOpened = resolve;
      this.#onNotOpened = reject;
    });
    // A caller may look only at its requests, or only at `ended`.
    this.opened.catch(() => {});
    this.ended = new Promise((resolve) => {
      this.#onEnded = resolve;
    });
    const open = settings.openSocket ?? openSocket;
    this.#socket = open(address, settings.tls, () => this.#onConnected());
    this.#socket.on("data", (chunk: Buffer) => this.#onData(chunk));
    this.#socket.on("error", (error: NodeJS.ErrnoException) => {
      // The error of several addresses of one host has no message.
      this.#end("connection_lost", error.message || `${error.code}`, error);
    });
    this.#socket.on("close", () => this.#end("connection_lost", this.#howClosed()));
    this.#openLimit = runtime.timers.after(openMs, () => {
      this.#end("silent", `no session within ${Math.round(openMs)} ms`);
    });
  }

  /** Null until the session is open. */
  get session(): OpenedSession | null {
    return this.#session;
  }

  /** Whether requests can be answered, as far as this process knows. */
  get isOpen(): boolean {
    return this.#isOpened && this.#reason === null;
  }

  /** The last transaction that the replies on this connection have shown. */
  get lastZxid(): bigint {
    return this.#lastZxid;
  }

  /**
   * The address of the very server, where a host name may stand for several; null while there is no
   * connection.
   */
  get peer(): Address | null {
    const { remoteAddress, remotePort } = this.#socket;
    return remoteAddress && remotePort ? { host: remoteAddress, port: remotePort } : null;
  }

  /** Requests are sent in the order of the calls. Rejects with a `ZookeeperError`. */
  send<Reply>(request: Request<Reply>): Promise<Reply> {
    if (this.#reason) return Promise.reject(this.#reason.for("not_sent"));
    const reply = this.#pending.add(request);
    this.#planFlush();
    return reply;
  }

  /** Ends the session with its ephemeral znodes, and then the connection. */
  async endSession(): Promise<void> {
    try {
      await this.send(closeSession());
    } finally {
      this.close();
    }
  }

  /** Ends the connection. The session stays until its timeout, or until it is resumed. */
  close(): void {
    this.#end("closed", "the connection was closed");
  }

  #onConnected(): void {
    const { chroot, credentials } = this.#settings;
    this.#isConnected = true;
    const proofs = credentials.map(({ scheme, text }) => {
      const writer = new JuteWriter(chroot).int(AUTH_XID).int(Operation.auth).int(0);
      return writer.text(scheme).buffer(Buffer.from(text)).frame();
    });
    const watches = this.#watches
      .restoration(this.#lastZxid)
      .map((request) => requestFrame(SET_WATCHES_XID, request, chroot));
    const frames = [this.#sessionFrame, ...proofs, ...watches];
    // Belief in the session counts from here, so nothing may come between this and the sending.
    this.#requestedMs = this.#runtime.clock.exactMs();
    this.#socket.write(Buffer.concat(frames));
    this.#planFlush();
  }

  /** The requests of one turn of the event loop travel together. */
  #planFlush(): void {
    if (this.#isFlushPlanned || !this.#isConnected || !this.#pending.hasUnsent) return;
    this.#isFlushPlanned = true;
    this.#runtime.timers.soon(() => {
      this.#isFlushPlanned = false;
      if (this.#reason) return;
      this.#pings.sent();
      this.#socket.write(this.#pending.takeUnsent());
    });
  }

  #onData(chunk: Buffer): void {
    this.#pings.heard();
    try {
      for (const frame of this.#splitter.push(chunk)) {
        if (this.#reason) return;
        const reader = new JuteReader(frame, this.#settings.chroot);
        if (this.#session || isAuthReply(frame)) this.#onReply(reader);
        else this.#onSession(reader);
      }
    } catch (error) {
      this.#end("unreadable", `its answer cannot be read: ${(error as Error).message}`, error);
    }
  }

  #onSession(reader: JuteReader): void {
    const reply = readSession(reader, this.#request.key);
    if (reply.type === "expired") {
      return this.#end("session_expired", "the session has expired", undefined, "refused");
    }
    if (reply.type === "read_only") {
      return this.#end("read_only", "the server has no quorum", undefined, "refused");
    }
    const { key, timeoutMs } = reply;
    this.#session = { key, timeoutMs, requestedMs: this.#requestedMs };
    this.#openWhenProven();
  }

  /** A session is of use only after the server has accepted all credentials. */
  #openWhenProven(): void {
    const session = this.#session;
    if (!session || this.#proven !== this.#settings.credentials.length) return;
    this.#openLimit.cancel();
    this.#isOpened = true;
    this.#onOpened(session);
    if (!this.#request.isQuiet) this.#pings.start(session.timeoutMs);
  }

  #onReply(reader: JuteReader): void {
    const header = readHeader(reader);
    const { xid, zxid, errorNumber } = header;
    if (xid === EVENT_XID) return this.#watches.fire(reader);
    if (xid > 0) {
      this.#pending.settle(reader, header);
      // Not of an event: further events of the same transaction may follow, and a connection that
      // restores watches since that transaction would miss them. They all come before a reply.
      if (zxid > this.#lastZxid) this.#lastZxid = zxid;
    }
    if (xid === AUTH_XID && errorNumber === 0) {
      this.#proven += 1;
      this.#openWhenProven();
    }
    if (errorNumber === 0) return;
    const { code, message } = serverError(errorNumber, "");
    // A server that refuses a credential reads no request behind it.
    if (xid === AUTH_XID) this.#end(code, message, undefined, "refused");
    else if (xid < 0 || code === "sasl_required") this.#end(code, message);
  }

  #howClosed(): string {
    if (this.#splitter.isInside) return "the connection was closed inside a reply";
    if (this.#session) return "the connection was closed by the server";
    return (
      "the server closed the connection before the session was open " +
      "(does it expect TLS, or has it no quorum?)"
    );
  }

  /** Only the first reason counts. `outcome`: of the requests that were sent. */
  #end(
    code: ErrorCode,
    message: string,
    cause?: unknown,
    outcome: RequestOutcome = "unknown",
  ): void {
    if (this.#reason) return;
    const { host, port } = this.address;
    const reason = new ZookeeperError(code, outcome, `${host}:${port}: ${message}`, cause);
    this.#reason = reason;
    this.#openLimit.cancel();
    this.#pings.stop();
    this.#socket.destroy();
    this.#onNotOpened(reason);
    this.#onEnded(reason);
    this.#pending.rejectAll(reason, outcome);
    if (!this.#request.watches) this.#watches.loseAll();
  }
}

/** A server with Netty may answer to a credential before it answers that the session is open. */
function isAuthReply(frame: Buffer): boolean {
  return frame.length >= 4 && frame.readInt32BE(0) === AUTH_XID;
}

/** The part of a socket that this client uses. */
export interface ServerSocket {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  on(event: "data", listener: (chunk: Buffer) => void): unknown;
  on(event: "error", listener: (error: NodeJS.ErrnoException) => void): unknown;
  on(event: "close", listener: () => void): unknown;
  write(bytes: Uint8Array): unknown;
  destroy(): unknown;
}

/** Opens a connection that keeps no process alive. `onReady`: bytes can be sent. */
export type OpenSocket = (
  address: Address,
  tls: TlsFiles | null,
  onReady: () => void,
) => ServerSocket;

export const openSocket: OpenSocket = (address, tls, onReady) => {
  const { host, port } = address;
  // Loaded here: most programs use no TLS.
  const socket = tls
    ? process.getBuiltinModule("node:tls").connect({ host, port, ...tls }, onReady)
    : connect({ host, port }, onReady);
  return socket.setNoDelay(true).unref();
};
