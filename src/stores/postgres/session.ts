import { StoreError } from "../../errors/index.js";
import { CALL_TIMEOUT_MS } from "../../families/ledger/command-batcher.js";
import type { Runtime } from "../../time/runtime.js";
import { TimeLimitError, type Timer, within } from "../../time/timers.js";
import type { Driver, OpeningConnection, OwnConnection, Statement } from "./client.js";
import { postgresError, STORE } from "./errors.js";

/** How long a connection may take until it can be used. */
const OPEN_LIMIT_MS = 5_000;
/** The server function that reports, after the commit, that it stopped waiting for standbys. */
const REPLICATION_GIVEN_UP = "SyncRepWaitForLSN";

/**
 * Sets the search path for the rest of the transaction. Otherwise a role that may create objects in
 * the database could add functions, operators and types that match a statement better than the
 * built-in ones, and the owner of the database could put them first on the path.
 */
export const OWN_PATH: string =
  "select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);";

/**
 * Overrides settings that the server, the database or the role may have changed for all
 * connections. The server must end a batch that this process has given up, and must not close a
 * connection that waits for messages. The advisory lock tells the server whether the connection
 * still exists (sql/queue.sql).
 */
const SETTINGS = `
  set_config('default_transaction_isolation', 'read committed', false),
  set_config('default_transaction_read_only', 'off', false),
  set_config('statement_timeout', '${CALL_TIMEOUT_MS}', false),
  set_config('idle_in_transaction_session_timeout', '0', false),
  case when current_setting('server_version_num')::int >= 140000
    then set_config('idle_session_timeout', '0', false) end,
  (select set_config('holdfast.connection', key::text, false)
    from (select (random() * ${Number.MAX_SAFE_INTEGER})::bigint as key) as drawn
    where pg_try_advisory_lock(key))`;

/**
 * A pooler in transaction mode would pass the settings on to other programs. So they are set only
 * if the process id of the server is the one that was announced when the connection started.
 */
const hello = (pid: number): string => `${OWN_PATH}
  select concat_ws(' ', current_setting('server_encoding'), pg_is_in_recovery(),
    pg_backend_pid() = ${pid}, case when pg_backend_pid() = ${pid} then concat(${SETTINGS}) end)`;
const SET = `${OWN_PATH} select concat(${SETTINGS})`;

/** Exclusive use of the connection, until the promise settles. */
interface Turn {
  take(): Promise<unknown>;
}

/** A statement that waits for its turn. */
export interface Job {
  /** Called when its turn has come; null where it is no longer needed. */
  statement(): Statement | null;
  onAnswer(text: string | null): void;
  /** The error of the client library, or ours. */
  onFailure(error: unknown): void;
}

/** The standby did not confirm the commit in time; the commit exists on this server. */
class NotReplicatedError extends Error {}

/**
 * One open connection, which runs its statements one after the other. A statement that is not
 * answered in time ends the connection, so that the statements behind it do not wait for it.
 */
export class Session {
  /** Resolves when the connection has ended. */
  readonly closed: Promise<void>;
  /** Whether the server process is ours for as long as the connection lasts. */
  isPinned = false;
  isReadOnly = false;
  /** When the server answered last. */
  answeredMs: number;
  onNotification: (channel: string, payload: string) => void = () => {};
  readonly #connection: OwnConnection;
  readonly #runtime: Runtime;
  readonly #jobs: (Job | Turn)[] = [];
  #current: Job | Turn | null = null;
  #isReplicationGivenUp = false;
  #limit: Timer | undefined;
  #isClosed = false;
  #onClosed = (): void => {};

  private constructor(connection: OwnConnection, runtime: Runtime) {
    this.#connection = connection;
    this.#runtime = runtime;
    this.answeredMs = runtime.clock.nowMs();
    this.closed = new Promise((resolve) => {
      this.#onClosed = resolve;
    });
    connection.onClose((cause) => this.close(cause));
    connection.onNotification((channel, payload) => this.onNotification(channel, payload));
    connection.onNotice((routine) => {
      if (routine === REPLICATION_GIVEN_UP) this.#isReplicationGivenUp = true;
    });
  }

  static async open(driver: Driver, server: number, runtime: Runtime): Promise<Session> {
    let opening: OpeningConnection | undefined;
    try {
      opening = driver.open(server);
      opening.opened.catch(() => {});
      const connection = await within(runtime.timers, OPEN_LIMIT_MS, opening.opened);
      const session = new Session(connection, runtime);
      await session.#greet();
      return session;
    } catch (cause) {
      opening?.abandon();
      throw postgresError(cause, "connecting");
    }
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get isIdle(): boolean {
    return this.#current === null;
  }

  /** Runs the job after those before it. */
  run(job: Job): void {
    if (this.#isClosed) return job.onFailure(notSent());
    this.#add(job);
  }

  /** The same with a promise. */
  send(statement: Statement): Promise<string | null> {
    return new Promise((onAnswer, onFailure) => {
      this.run({ statement: () => statement, onAnswer, onFailure });
    });
  }

  /** Runs no statement on this connection while `work` is under way. */
  whileSilent<T>(work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#add({ take: () => work().then(resolve, reject) });
    });
  }

  /** Called when the connection is proven to have its own server process: sets the settings. */
  async pin(): Promise<void> {
    await this.send({ text: SET });
    this.isPinned = true;
  }

  close(cause: unknown = new Error("The connection ended before the answer.")): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#limit?.cancel();
    this.#connection.close();
    const [current, ...waiting] = [this.#current, ...this.#jobs.splice(0)];
    this.#current = null;
    if (current && "statement" in current) current.onFailure(cause);
    for (const job of waiting) {
      if (job && "statement" in job) job.onFailure(notSent());
      else void job?.take();
    }
    this.#onClosed();
  }

  async #greet(): Promise<void> {
    const answer = (await this.send({ text: hello(this.#connection.backendPid) })) ?? "";
    const [encoding, recovers, isOwn] = answer.split(" ");
    if (encoding !== "UTF8") {
      this.close();
      const text = `The database has the encoding ${encoding}, which lacks characters: take UTF8.`;
      throw new StoreError(text, { outcome: "not_applied", retryable: false, store: STORE });
    }
    this.isReadOnly = recovers === "t";
    this.isPinned = isOwn === "t";
  }

  #add(job: Job | Turn): void {
    this.#jobs.push(job);
    if (this.isIdle) this.#next();
  }

  #next(): void {
    for (let job = this.#jobs.shift(); job; job = this.#jobs.shift()) {
      if ("take" in job) return this.#take(job);
      try {
        const statement = job.statement();
        if (statement) return this.#send(job, statement);
      } catch (error) {
        job.onFailure(error);
      }
    }
  }

  #take(turn: Turn): void {
    this.#current = turn;
    void turn.take().finally(() => this.#end(turn, () => {}));
  }

  #send(job: Job, statement: Statement): void {
    this.#current = job;
    this.#isReplicationGivenUp = false;
    this.#limit = this.#runtime.timers.after(CALL_TIMEOUT_MS, () => this.#giveUp());
    this.#connection.send(statement).then(
      (text) => this.#end(job, () => this.#answer(job, text)),
      (error) => this.#end(job, () => job.onFailure(error)),
    );
  }

  #answer(job: Job, text: string | null): void {
    this.answeredMs = this.#runtime.clock.nowMs();
    if (!this.#isReplicationGivenUp) return job.onAnswer(text);
    job.onFailure(new NotReplicatedError("The server gave up waiting for its standbys"));
  }

  #end(job: Job | Turn, tell: () => void): void {
    if (this.#current !== job) return;
    this.#limit?.cancel();
    this.#current = null;
    tell();
    // The recipient may have added a job, which runs at once.
    if (this.isIdle) this.#next();
  }

  #giveUp(): void {
    this.close(new TimeLimitError(CALL_TIMEOUT_MS));
  }
}

function notSent(): StoreError {
  const text = "The connection to Postgres ended before the command was sent.";
  return new StoreError(text, { outcome: "not_applied", store: STORE });
}
