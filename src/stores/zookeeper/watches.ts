/**
 * A session that is kept up over connections, for reads and watches. It is of no use for holding:
 * that this client is connected proves nothing about the life of the session.
 *
 * After the end of a connection the client resumes the session on the next server and restores the
 * watches there, as long as there are any. When the session is over, every watch is told `lost`,
 * and the next connection opens a new session. A request is never sent twice, nor later than its
 * caller waits: callers get the connection itself.
 */

import type { Watch } from "../../families/session/sequencer.js";
import { TimeLimitError, type Timers, within } from "../../time/timers.js";
import type { Ensemble } from "./client.js";
import { hasCode, ZookeeperError, zookeeperError } from "./errors.js";
import type { Connection } from "./wire/connection.js";
import { type DataReply, getData, type Request, sync, type Timed } from "./wire/requests.js";
import type { OpenedSession, SessionRequest } from "./wire/session.js";
import { type WatchEvent, type WatchListener, WatchTable } from "./wire/watch-table.js";

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

  /** `timeoutMs`: the timeout to ask for. Connects when a connection is first needed. */
  constructor(ensemble: Ensemble, timeoutMs: number) {
    this.#ensemble = ensemble;
    this.#timeoutMs = timeoutMs;
  }

  /** The open connection; waits for one up to `limitMs`. Rejects with a `ZookeeperError`. */
  async connected(limitMs: number): Promise<Connection> {
    if (this.#connection?.isOpen) return this.#connection;
    this.#callers += 1;
    try {
      return await within(this.#ensemble.runtime.timers, limitMs, this.#connect());
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
    await within(this.#ensemble.runtime.timers, limitMs, ending).catch(() => connection.close());
  }

  #connect(): Promise<Connection> {
    this.#connecting ??= new Promise((resolve, reject) => {
      this.#giveUp = reject;
      this.#keepTrying().then(resolve, reject);
    });
    return this.#connecting;
  }

  async #keepTrying(): Promise<Connection> {
    const { runtime } = this.#ensemble;
    for (;;) {
      if (this.#isClosed) throw closed();
      const limitMs = this.#session?.timeoutMs ?? this.#timeoutMs;
      try {
        return this.#adopt(await this.#ensemble.connect(this.#request(), limitMs));
      } catch (error) {
        const isExpired = hasCode(error, "session_expired");
        const isOver = runtime.clock.nowMs() - this.#lostMs > limitMs;
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
    this.#lostMs = this.#ensemble.runtime.clock.nowMs();
    if (this.#isClosed) return;
    this.#ensemble.moveFrom(connection.address);
    // Reports a failure to the watches.
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

/**
 * The session that reads queues and watches them. It holds no entries: a resume of a session ends
 * the requests under way, and a session that holds is resumed at every renewal.
 */

const TIMEOUT_MS = 10_000;

export class WatchingSession {
  readonly #ensemble: Ensemble;
  readonly #client: SessionClient;
  readonly #servers: string;

  constructor(ensemble: Ensemble, servers: string) {
    this.#ensemble = ensemble;
    this.#client = new SessionClient(ensemble, TIMEOUT_MS);
    this.#servers = servers;
  }

  /** Sends requests on one connection. One that does not answer in time is closed. */
  async use<T>(work: (connection: Connection) => Promise<T>, limitMs: number): Promise<T> {
    const { clock, timers } = this.#ensemble.runtime;
    const endMs = clock.nowMs() + limitMs;
    let connection: Connection | undefined;
    try {
      connection = await this.#client.connected(limitMs);
      return await within(timers, Math.max(1, endMs - clock.nowMs()), work(connection));
    } catch (error) {
      if (error instanceof TimeLimitError) connection?.close();
      throw zookeeperError(error, this.#servers);
    }
  }

  /** As `use`, on a server that has seen all that was committed before this call. */
  useLatest<T>(work: (connection: Connection) => Promise<T>, limitMs: number): Promise<T> {
    return this.use(async (connection) => {
      const upToDate = connection.send(sync("/"));
      const [, result] = await Promise.all([upToDate, work(connection)]);
      return result;
    }, limitMs);
  }

  unwatch(path: string, listener: WatchListener): void {
    this.#client.watches.remove(path, listener);
  }

  close(limitMs: number): Promise<void> {
    return this.#client.close(limitMs);
  }
}

/**
 * A watch on one znode, until the znode is gone. ZooKeeper's watches begin at the present and fire
 * once: each reading of the znode sets the next one, so no change between two is missed.
 *
 * A server that is behind its leader does not have new znodes yet. So the absence of a znode counts
 * only on a server that has applied the transaction at which the znode was there.
 */

export interface ZnodeListener {
  /** The znode as it is, at first and after every change of its data. */
  onData(reply: DataReply): void;
  /** The watch is over. */
  onGone(): void;
  /** The watch is over, and the end of the znode may have been missed. */
  onBroken(): void;
}

const CALL_MS = 1_500;
/** A watch that cannot be set is told as broken after this, so that its listener does not spin. */
const FAILED_MS = 100;

export class ZnodeWatch implements Watch {
  readonly #path: string;
  readonly #session: WatchingSession;
  readonly #timers: Timers;
  readonly #listener: ZnodeListener;
  readonly #sinceZxid: bigint;
  readonly #onEvent = (event: WatchEvent): void => this.#on(event);
  #connection: Connection | null = null;
  #isOver = false;

  /** `sinceZxid`: a transaction at which the znode was there; 0 where none is known. */
  constructor(
    path: string,
    session: WatchingSession,
    timers: Timers,
    listener: ZnodeListener,
    sinceZxid = 0n,
  ) {
    this.#path = path;
    this.#sinceZxid = sinceZxid;
    this.#session = session;
    this.#timers = timers;
    this.#listener = listener;
    void this.#read();
  }

  /** The connection on which the watch was set. */
  get connection(): Connection | null {
    return this.#connection;
  }

  close(): void {
    this.#isOver = true;
    this.#session.unwatch(this.#path, this.#onEvent);
  }

  async #read(): Promise<void> {
    try {
      const look = (connection: Connection): Promise<DataReply | Absence> => {
        this.#connection = connection;
        return connection.send(dataOrAbsence(this.#path, this.#onEvent));
      };
      let reply = await this.#session.use(look, CALL_MS);
      if (this.#isTooOld(reply)) reply = await this.#session.useLatest(look, CALL_MS);
      if (this.#isOver) return this.close();
      if (reply.stat) this.#listener.onData(reply);
      else if (this.#isTooOld(reply)) this.#fail();
      else this.#end().onGone();
    } catch {
      this.#fail();
    }
  }

  #isTooOld({ stat, zxid }: DataReply | Absence): boolean {
    // rule: absence-counts-on-servers-up-to-date
    return !stat && zxid < this.#sinceZxid;
  }

  #fail(): void {
    this.#timers.after(FAILED_MS, () => {
      if (!this.#isOver) this.#end().onBroken();
    });
  }

  #on({ type }: WatchEvent): void {
    if (this.#isOver) return;
    if (type === "deleted") this.#end().onGone();
    else if (type === "lost") this.#end().onBroken();
    else void this.#read();
  }

  #end(): ZnodeListener {
    this.close();
    return this.#listener;
  }
}

/** The server does not have the znode, and has applied all transactions up to `zxid`. */
interface Absence extends Timed {
  readonly stat: null;
}

function dataOrAbsence(path: string, listener: WatchListener): Request<DataReply | Absence> {
  return {
    ...getData(path, listener),
    readError: (error, zxid) => (hasCode(error, "no_node") ? { stat: null, zxid } : undefined),
    watch: { listener, kindBy: ({ stat }) => (stat ? "data" : null) },
  };
}
