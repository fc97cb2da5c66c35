import { isFinal, StoreError } from "../../errors/index.js";
import { Backoff } from "../../time/backoff.js";
import { pause } from "../../time/pause.js";
import type { Runtime } from "../../time/runtime.js";
import type { Timer } from "../../time/timers.js";
import type { Driver } from "./client.js";
import { STORE } from "./errors.js";
import { Session } from "./session.js";

const PAUSES = { firstMs: 50, longestMs: 2_000 };
/** Without pings, a connection whose other end is gone would show no error. */
const PING_EVERY_MS = 10_000;

/** The outcome of an attempt to connect. */
class Attempt {
  readonly promise: Promise<Session>;
  resolve: (session: Session) => void = () => {};
  reject: (error: unknown) => void = () => {};

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    // Nobody may be waiting for it.
    this.promise.catch(() => {});
  }
}

/** Keeps one connection to the server that accepts writes, for as long as the store is open. */
export class PrimaryConnection {
  /** Why the last attempt to connect failed; null after one that succeeded. */
  trouble: StoreError | null = null;
  readonly #driver: Driver;
  readonly #runtime: Runtime;
  readonly #onUp: (session: Session) => Promise<void>;
  readonly #pauses: Backoff;
  #session: Session | null = null;
  /** The attempt that is under way or comes next. */
  #attempt: Attempt | null = null;
  #nextPing: Timer | undefined;
  #server = 0;
  #isClosed = false;

  /** `onUp` is called for every new connection, and must not reject. */
  constructor(driver: Driver, runtime: Runtime, onUp: (session: Session) => Promise<void>) {
    this.#driver = driver;
    this.#runtime = runtime;
    this.#onUp = onUp;
    this.#pauses = new Backoff(runtime.random, PAUSES);
  }

  /** The index of the server of the connection. */
  get server(): number {
    return this.#server;
  }

  /** The connection in use; null while there is none. */
  get session(): Session | null {
    return this.#session?.isClosed ? null : this.#session;
  }

  /** The connection in use, or the outcome of the next attempt to make one. */
  ready(): Promise<Session> {
    if (this.#isClosed) return Promise.reject(closedError());
    if (this.session) return Promise.resolve(this.session);
    if (!this.#attempt) {
      this.#attempt = new Attempt();
      void this.#keepUp(this.#attempt);
    }
    return this.#attempt.promise;
  }

  close(): void {
    this.#isClosed = true;
    this.#session?.close();
    this.#attempt?.reject(closedError());
  }

  async #keepUp(first: Attempt): Promise<void> {
    for (let attempt = first; !this.#isClosed; ) {
      const next = new Attempt();
      try {
        const session = await this.#open();
        if (this.#isClosed) return session.close();
        this.#session = session;
        this.#attempt = next;
        this.trouble = null;
        attempt.resolve(session);
        await this.#use(session);
        this.#session = null;
      } catch (error) {
        this.#attempt = next;
        this.trouble = error instanceof StoreError ? error : null;
        attempt.reject(error);
      }
      if (this.#isClosed) return;
      await pause(this.#runtime.timers, this.#pauses.nextMs());
      attempt = next;
    }
  }

  /** Resolves when the connection has ended. */
  async #use(session: Session): Promise<void> {
    // Commands that waited for the connection go first.
    await null;
    void this.#onUp(session);
    this.#ping(session);
    await session.closed;
    this.#nextPing?.cancel();
  }

  /** Tries each server, from the one that was in use. */
  async #open(): Promise<Session> {
    const { servers } = this.#driver;
    let failure: unknown;
    for (const _ of servers) {
      try {
        const session = await Session.open(this.#driver, this.#server, this.#runtime);
        if (!session.isReadOnly) {
          this.#pauses.reset();
          return session;
        }
        session.close();
        throw readOnly(servers[this.#server]);
      } catch (error) {
        // The error of a server that refuses is more useful than that of one that does not answer.
        failure = isFinal(failure) ? failure : error;
        this.#server = (this.#server + 1) % servers.length;
      }
    }
    throw failure;
  }

  #ping(session: Session): void {
    this.#nextPing = this.#runtime.timers.after(PING_EVERY_MS, () => {
      const isSilent = this.#runtime.clock.nowMs() - session.answeredMs >= PING_EVERY_MS;
      // A statement under way has its own time limit. A failed ping ends the connection.
      if (isSilent && session.isIdle) session.send({ text: "select 1" }).catch(() => {});
      this.#ping(session);
    });
  }
}

function readOnly(server: string | undefined): StoreError {
  const advice = "connect to the server that accepts writes, or name all servers in the URL";
  const text = `Postgres at ${server} is a standby, which is read-only: ${advice}.`;
  return new StoreError(text, { outcome: "not_applied", store: STORE });
}

function closedError(): StoreError {
  const context = { outcome: "not_applied", retryable: false, store: STORE } as const;
  return new StoreError("The store is closed.", context);
}
