/**
 * A session that is kept up over connections, for reads and watches. It is of no use for holding:
 * that this client is connected proves nothing about the life of the session.
 *
 * After the end of a connection the client resumes the session on the next server and restores the
 * watches there, as long as there are any. When the session is over, every watch is told `lost`,
 * and the next connection opens a new session. A request is never sent twice, nor later than its
 * caller waits: callers get the connection itself.
 */
import { TimeLimitError, within } from "../../../time/timers.js";
import type { Connection } from "./connection.js";
import type { Ensemble } from "./ensemble.js";
import type { OpenedSession, SessionRequest } from "./opened-session.js";
import { WatchTable } from "./watch-table.js";
import { hasCode, ZookeeperError } from "./zookeeper-error.js";

export class SessionClient {
  /** The watches that requests on the connections of this client have set. */
  readonly watches: WatchTable = new WatchTable();
  readonly #ensemble: Ensemble;
  readonly #timeoutMs: number;
  #connection: Connection | null = null;
  #connecting: Promise<Connection> | null = null;
  /** Ends the calls that wait for `#connecting`. */
  #giveUp: (error: ZookeeperError) => void = () => {};
  #session: OpenedSession | null = null;
  #lastZxid = 0n;
  /** When the last connection of the session ended. */
  #lostMs = 0;
  /** Calls that wait for a connection. */
  #callers = 0;
  #isClosed = false;

  /** `timeoutMs`: the time-out to ask for. Connects when a connection is first needed. */
  constructor(ensemble: Ensemble, timeoutMs: number) {
    this.#ensemble = ensemble;
    this.#timeoutMs = timeoutMs;
  }

  /** The open connection; waits for one up to `limitMs`. Rejects with a `ZookeeperError`. */
  async connected(limitMs: number): Promise<Connection> {
    if (this.#connection?.isOpen) return this.#connection;
    this.#callers += 1;
    try {
      return await within(this.#ensemble.port.timers, limitMs, this.#connect());
    } catch (error) {
      throw error instanceof TimeLimitError ? this.#ensemble.notConnected() : error;
    } finally {
      this.#callers -= 1;
    }
  }

  /** Ends the session; waits for the answer of the server up to `limitMs`. Never rejects. */
  async close(limitMs: number): Promise<void> {
    this.#isClosed = true;
    // The timer of a call that waits would keep the process alive.
    this.#giveUp(closed());
    this.watches.loseAll();
    const connection = this.#connection;
    if (!connection) return;
    const ending = connection.endSession();
    await within(this.#ensemble.port.timers, limitMs, ending).catch(() => connection.close());
  }

  #connect(): Promise<Connection> {
    this.#connecting ??= new Promise((resolve, reject) => {
      this.#giveUp = reject;
      this.#keepTrying().then(resolve, reject);
    });
    return this.#connecting;
  }

  async #keepTrying(): Promise<Connection> {
    const { port } = this.#ensemble;
    for (;;) {
      if (this.#isClosed) throw closed();
      const limitMs = this.#session?.timeoutMs ?? this.#timeoutMs;
      try {
        return this.#adopt(await this.#ensemble.connect(this.#request(), limitMs));
      } catch (error) {
        const isExpired = hasCode(error, "session_expired");
        const isOver = port.clock.nowMs() - this.#lostMs > limitMs;
        const mayRecover = isExpired || hasCode(error, "not_connected");
        // A server that was set back refuses the last zxid of the session, so that it ends, too.
        if (isExpired || isOver || !mayRecover) this.#forget();
        const isNeeded = this.#callers > 0 || this.watches.size > 0;
        if (mayRecover && isNeeded) continue;
        // At once: a caller that comes next must not wait for this try.
        this.#connecting = null;
        throw error;
      }
    }
  }

  #request(): SessionRequest {
    const { watches } = this;
    const [key, lastZxid] = [this.#session?.key ?? null, this.#lastZxid];
    return { key, timeoutMs: this.#timeoutMs, lastZxid, watches };
  }

  #adopt(connection: Connection): Connection {
    if (this.#isClosed) {
      connection.endSession().catch(() => {});
      throw closed();
    }
    this.#connecting = null;
    this.#connection = connection;
    this.#session = connection.session;
    void connection.ended.then(() => this.#onEnded(connection));
    return connection;
  }

  #onEnded(connection: Connection): void {
    this.#lastZxid = connection.lastZxid;
    this.#lostMs = this.#ensemble.port.clock.nowMs();
    if (this.#isClosed) return;
    this.#ensemble.moveFrom(connection.address);
    // A failure is told to the watches.
    if (this.watches.size > 0) this.#connect().catch(() => {});
  }

  #forget(): void {
    this.#session = null;
    this.#lastZxid = 0n;
    this.watches.loseAll();
  }
}

function closed(): ZookeeperError {
  return new ZookeeperError("closed", "not_sent", "the client was closed");
}
