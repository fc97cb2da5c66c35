/**
 * The connections of one session that holds entries: one at a time, without watches and pings.
 *
 * A new connection resumes the session, and the server ends the one before it, with every request
 * that has no answer. So before a resume, new requests wait for a moment, until those under way are
 * answered. A connection that did not answer in time is closed: its session goes on, on the next
 * connection.
 *
 * A server that keeps sessions for less time shortens the session when it resumes it. If its answer
 * is lost, this process counts on the whole timeout until its deadline. So a session is resumed
 * only at a server that has granted the timeout: on the connection of the session, if that is
 * still open, or a moment ago to another session, which is opened just to ask.
 */
import { TimeLimitError, within } from "../../time/timers.js";
import type { Address } from "../store-url.js";
import { askStatus, type Ensemble } from "./client.js";
import { hasCode, ZookeeperError } from "./errors.js";
import type { Connection } from "./wire/connection.js";
import type { SessionKey } from "./wire/session.js";

/** ZooKeeper has ended the session, or keeps it for less time than before. */
export class SessionGoneError extends Error {
  constructor(why: string) {
    super(why);
    this.name = "SessionGoneError";
  }
}

/** Where the connections go. */
export interface ServerChoice {
  readonly ensemble: Ensemble;
  /** The addresses are those of servers: no balancer chooses one. */
  readonly isDirect: boolean;
}

/** Requests under way are waited for no longer than this part of the timeout before a resume. */
const DRAIN_PART = 20;
const MAX_DRAIN_MS = 250;
/** New requests wait no longer than this for a resume. */
const MAX_KEPT_MS = 500;
/** A server that does not resume the session within this part of the timeout is given up. */
const OPEN_PART = 8;
const MIN_OPEN_MS = 250;

export class SessionConnections {
  readonly key: SessionKey;
  /** Asked for by every connection, and granted by every server: see `#granting`. */
  readonly timeoutMs: number;
  readonly #ensemble: Ensemble;
  readonly #isDirect: boolean;
  #current: Connection | null;
  /** The numbers of the last connection that began, and of the current one. */
  #lastNumber = 0;
  #currentNumber = 0;
  #reconnecting: Promise<Connection> | null = null;
  /** Resolves when the resumes under way have ended. */
  #resuming: Promise<unknown> | null = null;
  #unanswered = 0;
  #onDrained: () => void = () => {};
  /** The connection whose server said that it leads. A server that loses the lead closes it. */
  #toLeader: Connection | null = null;
  #isGone = false;
  #isClosed = false;

  constructor(
    key: SessionKey,
    timeoutMs: number,
    { ensemble, isDirect }: ServerChoice,
    current: Connection | null = null,
  ) {
    this.key = key;
    this.timeoutMs = timeoutMs;
    this.#ensemble = ensemble;
    this.#isDirect = isDirect;
    this.#current = current;
    if (current) this.#askLeader(current);
  }

  /** Opens a session. The server may grant another timeout than the one asked for. */
  static async open(
    timeoutMs: number,
    servers: ServerChoice,
    limitMs: number,
  ): Promise<SessionConnections> {
    const request = { key: null, timeoutMs, isQuiet: true };
    const connection = await servers.ensemble.connect(request, limitMs);
    const opened = await connection.opened;
    return new SessionConnections(opened.key, opened.timeoutMs, servers, connection);
  }

  /** Sends requests on one connection; throws `SessionGoneError` when the session has ended. */
  async use<T>(work: (connection: Connection) => Promise<T>, limitMs: number): Promise<T> {
    const { clock, timers } = this.#ensemble.runtime;
    let connection = this.#ready;
    let restMs = limitMs;
    if (!connection) {
      const endMs = clock.nowMs() + limitMs;
      connection = await this.#connected(limitMs);
      restMs = Math.max(1, endMs - clock.nowMs());
    }
    this.#unanswered += 1;
    try {
      return await within(timers, restMs, work(connection));
    } catch (error) {
      if (error instanceof TimeLimitError) this.#abandon(connection);
      throw this.#judged(error);
    } finally {
      this.#unanswered -= 1;
      if (this.#unanswered === 0) this.#onDrained();
    }
  }

  /**
   * Sends requests that prove the life of the session, once they are answered: behind a resume, or
   * on a connection to the leader, which counts the timeout from each of its own requests.
   */
  prove<T>(work: (connection: Connection) => Promise<T>, limitMs: number): Promise<T> {
    // rule: proof-resumes-the-session
    const isAtLeader = this.#ready !== null && this.#ready === this.#toLeader;
    return isAtLeader ? this.use(work, limitMs) : this.#resume(work, limitMs);
  }

  /** Resumes the session on a new connection, and sends requests behind that of the resume. */
  async #resume<T>(work: (connection: Connection) => Promise<T>, limitMs: number): Promise<T> {
    const { clock, timers } = this.#ensemble.runtime;
    const endMs = clock.nowMs() + limitMs;
    const onOpened = this.#keepBack();
    let connection: Connection | undefined;
    try {
      await this.#drained();
      this.#assertThere();
      const number = ++this.#lastNumber;
      const address = await this.#granting(Math.max(1, endMs - clock.nowMs()));
      const restMs = Math.max(1, endMs - clock.nowMs());
      connection = this.#open(address, restMs);
      const taken = this.#take(connection, number).finally(onOpened);
      // rule: proof-is-committed-behind-its-resume
      const [result] = await within(timers, restMs, Promise.all([work(connection), taken]));
      return result;
    } catch (error) {
      if (connection) this.#abandon(connection);
      throw this.#judged(error);
    } finally {
      onOpened();
    }
  }

  /** Ends the session with its entries. */
  async end(limitMs: number): Promise<void> {
    await this.use((connection) => connection.endSession(), limitMs);
    this.#isGone = true;
  }

  /** Leaves the session to its timeout, or to the process that resumes it. */
  close(): void {
    this.#isClosed = true;
    this.#current?.close();
  }

  /** A server that was set back to old data refuses the session, so that the session ends. */
  get #request() {
    const { key, timeoutMs } = this;
    return { key, timeoutMs, lastZxid: this.#current?.lastZxid ?? 0n, isQuiet: true };
  }

  get #ready(): Connection | null {
    return !this.#resuming && this.#current?.isOpen ? this.#current : null;
  }

  async #connected(limitMs: number): Promise<Connection> {
    const { clock, timers } = this.#ensemble.runtime;
    const endMs = clock.nowMs() + limitMs;
    this.#assertThere();
    if (this.#resuming) await within(timers, limitMs, this.#resuming);
    if (this.#current?.isOpen) return this.#current;
    const restMs = Math.max(1, endMs - clock.nowMs());
    this.#reconnecting ??= this.#reconnect(restMs).finally(() => {
      this.#reconnecting = null;
    });
    return within(timers, restMs, this.#reconnecting);
  }

  async #reconnect(limitMs: number): Promise<Connection> {
    const { clock } = this.#ensemble.runtime;
    const endMs = clock.nowMs() + limitMs;
    const number = ++this.#lastNumber;
    let connection: Connection | undefined;
    try {
      const address = await this.#granting(limitMs);
      connection = this.#open(address, Math.max(1, endMs - clock.nowMs()));
      await this.#take(connection, number);
      return connection;
    } catch (error) {
      if (connection) this.#abandon(connection);
      throw this.#judged(error);
    }
  }

  /** Begins to resume the session there. */
  #open(address: Address, limitMs: number): Connection {
    this.#assertThere();
    const openMs = Math.min(limitMs, Math.max(this.timeoutMs / OPEN_PART, MIN_OPEN_MS));
    return this.#ensemble.open(this.#request, openMs, address);
  }

  /** A server that grants the timeout of the session. */
  async #granting(limitMs: number): Promise<Address> {
    const { current, runtime } = this.#ensemble;
    if (this.#current?.isOpen && this.#current.address === current) return current;
    // With the last zxid: on a server that was set back, a session more would bring it nearer.
    const request = { ...this.#request, key: null };
    const connection = await this.#ensemble.connect(request, limitMs);
    const { timeoutMs } = await connection.opened;
    const { address } = connection;
    const limit = runtime.timers.after(MAX_DRAIN_MS, () => connection.close());
    const ending = connection.endSession().catch(() => {});
    void ending.then(() => limit.cancel());
    if (timeoutMs >= this.timeoutMs) return address;
    this.#ensemble.moveFrom(address);
    const server = `${address.host}:${address.port}`;
    const message = `${server} keeps sessions for ${timeoutMs} ms at most, and this one needs more`;
    throw new ZookeeperError("not_connected", "not_sent", message);
  }

  /** The connection takes the place of those that began before it. */
  async #take(connection: Connection, number: number): Promise<void> {
    const { timeoutMs } = await connection.opened;
    if (this.#isClosed) {
      connection.close();
      throw closed();
    }
    // A belief counts on the timeout of the session, so that must not become shorter.
    if (timeoutMs < this.timeoutMs) {
      // Before the throw, which closes the connection.
      const { timers } = this.#ensemble.runtime;
      await within(timers, MAX_DRAIN_MS, connection.endSession()).catch(() => {});
      throw new SessionGoneError(`the session was resumed for ${timeoutMs} ms only`);
    }
    if (number < this.#currentNumber) return connection.close();
    this.#current?.close();
    this.#current = connection;
    this.#currentNumber = number;
    this.#askLeader(connection);
  }

  #askLeader(connection: Connection): void {
    const { settings, runtime } = this.#ensemble;
    if (!this.#isDirect || !connection.peer) return;
    askStatus(connection.peer, settings, { limitMs: MAX_DRAIN_MS, runtime }).then(
      ({ mode }) => {
        if (mode === "leader" || mode === "standalone") this.#toLeader = connection;
      },
      () => {},
    );
  }

  /** The next connection goes to another server. */
  #abandon(connection: Connection): void {
    connection.close();
    this.#ensemble.moveFrom(connection.address);
  }

  /** New requests wait until the returned function is called. */
  #keepBack(): () => void {
    let end = (): void => {};
    const kept = new Promise<void>((resolve) => {
      const timer = this.#ensemble.runtime.timers.after(MAX_KEPT_MS, resolve);
      end = () => {
        timer.cancel();
        resolve();
      };
    });
    const all = Promise.all([this.#resuming, kept]).then(() => {
      if (this.#resuming === all) this.#resuming = null;
    });
    this.#resuming = all;
    return end;
  }

  /** Resolves when no request is under way, or when that takes too long. */
  async #drained(): Promise<void> {
    if (this.#unanswered === 0 || !this.#current?.isOpen) return;
    const drainMs = Math.min(this.timeoutMs / DRAIN_PART, MAX_DRAIN_MS);
    const drained = new Promise<void>((resolve) => {
      this.#onDrained = resolve;
    });
    await within(this.#ensemble.runtime.timers, drainMs, drained).catch(() => {});
  }

  #assertThere(): void {
    if (this.#isClosed) throw closed();
    if (this.#isGone) throw new SessionGoneError("the session has ended");
  }

  #judged(error: unknown): unknown {
    if (hasCode(error, "session_expired")) {
      this.#isGone = true;
      return new SessionGoneError(error.message);
    }
    if (error instanceof SessionGoneError) this.#isGone = true;
    return error;
  }
}

function closed(): ZookeeperError {
  return new ZookeeperError("closed", "not_sent", "the connections of the session were closed");
}
