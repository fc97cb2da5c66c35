import type { Examination, ExamineRequest } from "../../contract/examination.js";
import type { Traits } from "../../contract/store.js";
import { isFinal, StoreError } from "../../errors/index.js";
import { foreignData, guarded, reportForeign } from "../../events/foreign-data.js";
import type { Arbiter, Execution } from "../../families/ledger/arbiter.js";
import { CALL_TIMEOUT_MS } from "../../families/ledger/command-batcher.js";
import type { Command, Push, View } from "../../rules/ledger-command.js";
import { networkRuntime, type Runtime } from "../../time/runtime.js";
import { TimeLimitError, within } from "../../time/timers.js";
import { Batches } from "./batches.js";
import type { Driver, OwnConnection, Statement } from "./client.js";
import { channelOf, decode, decodePage, decodePush, executeStatement, rowOf } from "./codec.js";
import { isUnreachable, postgresError, STORE } from "./errors.js";
import { setUp } from "./migration.js";
import { Notifications } from "./notifications.js";
import { PrimaryConnection } from "./primary-connection.js";
import { toStored } from "./stored-text.js";
import { Sweeper } from "./sweeper.js";

const TRAITS: Traits = {
  scope: "network",
  modes: ["exclusive", "shared"],
  fifo: true,
  tokenSpan: true,
  transferable: true,
  marks: true,
  minTtlMs: 50,
};

/** The server keeps the plan of the statement under this name. */
const EXECUTE_NAME = "holdfast_execute_3";
const LIST = {
  text: `select holdfast.list_3($1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text,
    $4::integer)`,
};
/** How many rows one statement of a listing looks at. */
const PAGE = 500;

export interface PostgresArbiterOptions {
  readonly namespace: string;
  /** No commit that the server has acknowledged is lost in a failover. */
  readonly hasSynchronousStandby: boolean;
}

export class PostgresArbiter implements Arbiter {
  readonly name: string = STORE;
  readonly namespace: string;
  readonly traits: Traits = TRAITS;
  readonly isLocal = false;
  readonly believesPushes: boolean;
  readonly runtime: Runtime = networkRuntime();
  readonly #hasSynchronousStandby: boolean;
  readonly #driver: Driver;
  readonly #connection: PrimaryConnection;
  readonly #batches: Batches;
  readonly #sweeper: Sweeper;
  #notifications: Notifications | null = null;

  constructor(driver: Driver, { namespace, hasSynchronousStandby }: PostgresArbiterOptions) {
    const { runtime } = this;
    this.namespace = namespace;
    this.#hasSynchronousStandby = hasSynchronousStandby;
    // A handoff may be visible before a standby has it: the commit of its confirm waits for both.
    this.believesPushes = !hasSynchronousStandby;
    this.#driver = driver;
    this.#connection = new PrimaryConnection(driver, runtime, async (session) =>
      this.#notifications?.start(session),
    );
    this.#sweeper = new Sweeper(runtime, () => this.#connection.session);
    this.#batches = new Batches(this.#connection, runtime, {
      statement: (commands, isPinned) => {
        const statement = executeStatement(namespace, commands, hasSynchronousStandby);
        // Behind a pooler, another server process may not know this prepared statement.
        return isPinned ? { ...statement, name: EXECUTE_NAME } : statement;
      },
      read: (commands, text) => read(() => decode(commands, text)),
      setUp,
    });
  }

  get pollMs(): number {
    return this.#notifications?.pollMs ?? Number.POSITIVE_INFINITY;
  }

  /** Resolves when the database can be used, and rejects if it cannot within a time limit. */
  async connected(): Promise<void> {
    const { clock, timers } = this.runtime;
    for (const endMs = clock.nowMs() + CALL_TIMEOUT_MS; ; ) {
      try {
        await within(timers, endMs - clock.nowMs(), this.#batches.run([]));
        return;
      } catch (cause) {
        const { trouble } = this.#connection;
        const isLate = cause instanceof TimeLimitError && trouble !== null;
        const error = isLate ? trouble : postgresError(cause, "connecting");
        if (isFinal(error) || clock.nowMs() >= endMs) throw await this.explain(error);
      }
    }
  }

  shardOf(): string {
    return "";
  }

  execute(_shard: string, commands: readonly Command[]): Promise<Execution> {
    this.#sweeper.onWork();
    return this.#batches.run(commands);
  }

  async *list(prefix: string): AsyncIterable<{ key: string; view: View }> {
    const [namespace, start] = [toStored(this.namespace), toStored(prefix)];
    for (let after: string | null = ""; after !== null; ) {
      const values = [namespace, start, after, `${PAGE}`];
      const text = await this.#ask({ ...LIST, values });
      const page = read(() => decodePage(text, (key, error) => this.#skip(key, error)));
      yield* page.names;
      after = page.after;
    }
  }

  /**
   * Commands do not wait until the channel is open. After `onReset` the family asks for everything
   * that it may have missed.
   */
  listen(client: string, onPush: (push: Push) => void, onReset: () => void): void {
    const notifications = new Notifications(this.runtime, {
      namespace: this.namespace,
      channel: channelOf(client),
      onMessage: guarded(this.name, "a message to this client", (payload: string) => {
        const push = decodePush(client, payload);
        // The message was too long for the server.
        if (push) onPush(push);
        else onReset();
      }),
      onReset,
      openAnother: () => this.#openAnother(),
    });
    this.#notifications = notifications;
    if (this.#connection.session) void notifications.start(this.#connection.session);
    else this.#connection.ready().catch(() => {});
  }

  async explain(error: StoreError): Promise<StoreError> {
    const { trouble } = this.#connection;
    if (!trouble) return error;
    const { outcome, retryable, lockName, store } = error;
    // An error that only says that nothing answered adds nothing to the reason.
    const rest = isUnreachable(error) ? "" : error.message.replace(trouble.message, "").trim();
    const text = [this.#whyNot(trouble), rest].filter(Boolean).join(" ");
    return new StoreError(text, { outcome, retryable, lockName, store, cause: trouble });
  }

  async examine(request: ExamineRequest): Promise<Examination> {
    const { runtime } = this;
    await within(runtime.timers, CALL_TIMEOUT_MS, this.#connection.ready()).catch(
      (cause: unknown) => {
        throw postgresError(cause, "connecting");
      },
    );
    // Only a doctor needs this.
    const { examinePostgres } = await import("./doctor.js");
    const ask = (statement: Statement): Promise<string | null> => this.#ask(statement);
    const openAnother = (): Promise<OwnConnection> => this.#openAnother();
    const hasSynchronousStandby = this.#hasSynchronousStandby;
    return examinePostgres({ runtime, hasSynchronousStandby, ask, openAnother }, request);
  }

  async close(): Promise<void> {
    await this.#sweeper.close();
    this.#connection.close();
  }

  /** Why there is no connection. */
  #whyNot(trouble: StoreError): string {
    const servers = this.#driver.servers.join(", ");
    const { message } = trouble;
    if (isUnreachable(trouble)) {
      const reason = message.replace(/^Postgres failed: |\.$/g, "");
      return `No Postgres answers at ${servers} (${reason}).`;
    }
    const refused = `Postgres at ${servers} refuses connections:`;
    return message.replace(/^Postgres refused:/, refused);
  }

  async #ask(statement: Statement): Promise<string | null> {
    const session = await this.#connection.ready();
    try {
      // The command batcher, which limits all other calls, does not send this.
      return await within(this.runtime.timers, CALL_TIMEOUT_MS, session.send(statement));
    } catch (cause) {
      throw postgresError(cause, "running");
    }
  }

  async #openAnother(): Promise<OwnConnection> {
    const { opened, abandon } = this.#driver.open(this.#connection.server);
    try {
      return await within(this.runtime.timers, CALL_TIMEOUT_MS, opened);
    } catch (error) {
      abandon();
      throw error;
    }
  }

  #skip(key: string, error: unknown): void {
    reportForeign(this.name, rowOf(key), error);
  }
}

function read<T>(decoded: () => T): T {
  try {
    return decoded();
  } catch (error) {
    throw foreignData("the answer to a statement", error);
  }
}
