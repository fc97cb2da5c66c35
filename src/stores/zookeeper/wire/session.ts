/** The first request on a connection: it opens a session, or resumes one. */
import { Unreadable } from "../../../events/foreign-data.js";
import type { Timer, Timers } from "../../../time/timers.js";
import { type JuteReader, JuteWriter } from "./jute.js";
import type { WatchTable } from "./watch-table.js";

/** The id and the secret of a session: any connection that has both can resume it. */
export interface SessionKey {
  readonly id: bigint;
  readonly password: Buffer;
}

/** The session that a connection is opened for. */
export interface SessionRequest {
  /** Null: a new session. */
  readonly key: SessionKey | null;
  /** The timeout to ask for. The server grants one within its bounds. */
  readonly timeoutMs: number;
  /** A server that has not applied this transaction refuses the connection. Default 0. */
  readonly lastZxid?: bigint;
  /**
   * The watches of the session, which are restored on this connection. Default: a table of the
   * connection, whose watches are lost when the connection ends.
   */
  readonly watches?: WatchTable;
  /**
   * The connection sends no pings, and does not look for silence. Only requests keep the session
   * alive then. Default: false.
   */
  readonly isQuiet?: boolean;
}

/** A session as the server opened or resumed it. */
export interface OpenedSession {
  readonly key: SessionKey;
  /** The timeout that the server granted. */
  readonly timeoutMs: number;
  /** The local time (`exactMs`) just before the request to open or resume the session was sent. */
  readonly requestedMs: number;
}

/** The answer of a server to a `SessionRequest`. */
export type SessionReply =
  | { readonly type: "opened"; readonly key: SessionKey; readonly timeoutMs: number }
  /** The server has ended the session, or the password is wrong. */
  | { readonly type: "expired" }
  /** The server has no quorum, and serves reads only. */
  | { readonly type: "read_only" };

/** The longest timeout that a request can ask for: a signed number of 32 bits. */
export const MAX_TIMEOUT_MS: number = 2 ** 31 - 1;

const PROTOCOL_VERSION = 0;
const PASSWORD_BYTES = 16;
const NO_PASSWORD = Buffer.alloc(PASSWORD_BYTES);

export function sessionFrame({ key, timeoutMs, lastZxid = 0n }: SessionRequest): Buffer {
  return new JuteWriter("")
    .int(PROTOCOL_VERSION)
    .long(lastZxid)
    .int(timeoutMs)
    .long(key?.id ?? 0n)
    .buffer(key?.password ?? NO_PASSWORD)
    .bool(false) // A read-only server must refuse: its answers prove nothing.
    .frame();
}

export function readSession(reader: JuteReader, asked: SessionKey | null): SessionReply {
  reader.int();
  const timeoutMs = reader.int();
  const key = { id: reader.long(), password: reader.buffer() };
  // Old servers do not tell.
  if (!reader.isAtEnd && reader.bool()) return { type: "read_only" };
  if (timeoutMs <= 0 && asked) return { type: "expired" };
  const isExpectedId = key.id === (asked?.id ?? key.id) && key.id !== 0n;
  if (timeoutMs <= 0 || !isExpectedId || key.password.length !== PASSWORD_BYTES) {
    throw new Unreadable("a session");
  }
  return { type: "opened", key, timeoutMs };
}

const BEATS_PER_TIMEOUT = 6;
const MAX_SILENT_BEATS = 4;

/** The part of a connection that pings are for. */
export interface PingListener {
  ping(): void;
  /** Nothing arrived for two thirds of the timeout, and no further ping follows. */
  onSilence(): void;
}

/**
 * A server ends a session that is silent for its timeout, and this process has to notice a silent
 * server before that. Time is counted in beats of a sixth of the timeout: a ping follows a beat in
 * which nothing was sent, and silence is told after four beats in which nothing arrived. A process
 * that was stopped sees one late beat, and reads all that arrived meanwhile before the next one.
 */
export class PingTimer {
  readonly #timers: Timers;
  readonly #listener: PingListener;
  #timer: Timer | undefined;
  #silentBeats = 0;
  #hasSent = true;

  constructor(timers: Timers, listener: PingListener) {
    this.#timers = timers;
    this.#listener = listener;
  }

  start(timeoutMs: number): void {
    this.#timer = this.#timers.after(timeoutMs / BEATS_PER_TIMEOUT, () => {
      this.#silentBeats += 1;
      if (this.#silentBeats >= MAX_SILENT_BEATS) return this.#listener.onSilence();
      if (!this.#hasSent) this.#listener.ping();
      this.#hasSent = !this.#hasSent;
      this.start(timeoutMs);
    });
  }

  sent(): void {
    this.#hasSent = true;
  }

  heard(): void {
    this.#silentBeats = 0;
  }

  stop(): void {
    this.#timer?.cancel();
  }
}
