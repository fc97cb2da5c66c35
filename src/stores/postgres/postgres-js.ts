import type { Socket } from "node:net";
import { importPostgres } from "../peers.js";
import type {
  Driver,
  OpeningConnection,
  OwnConnection,
  PostgresTarget,
  Statement,
} from "./client.js";

/** The members by which the `sql` of `postgres` is recognized. */
export interface PostgresSql {
  /** The options that the store connects with. */
  readonly options: object;
  /** Not called by the store. */
  unsafe(...args: never[]): unknown;
}

/** The used members of the `sql` of `postgres` 3. */
interface Sql {
  readonly options: ParsedOptions;
  unsafe(text: string, values: readonly string[], options: object): Query;
  end(options: { readonly timeout: number }): Promise<void>;
}

interface Query {
  raw(): Promise<Rows | readonly Rows[]>;
  readonly state?: { readonly pid: number | null };
}

type Rows = readonly (readonly (Buffer | null)[])[];

interface ParsedOptions {
  readonly host: readonly string[];
  readonly port: readonly number[];
  readonly path?: string | false;
  readonly socket?: (options: object) => Socket | Promise<Socket>;
}

type SqlConstructor = (options: object) => Sql & PostgresSql;

export function isPostgresSql(value: unknown): value is PostgresSql {
  if (typeof value !== "function") return false;
  // Versions before 3 have no `typed`.
  const { options, unsafe, typed } = value as Partial<Sql & { typed: unknown }>;
  const isSql = typeof unsafe === "function" && Array.isArray(options?.host);
  return isSql && typeof typed === "function";
}

/** Connections like those of the user's `sql`. */
export function postgresJsDriver(sql: PostgresSql): Driver {
  const { options } = sql as unknown as Sql;
  const { host, port, path } = options;
  return {
    servers: path ? [path] : host.map((name, at) => `${name}:${port[at]}`),
    open: (server) => new Opening(options, server),
  };
}

/** Connections to the servers of a URL; null where `postgres` is not installed, or too old. */
export async function loadPostgresJsDriver(target: PostgresTarget): Promise<Driver | null> {
  const postgres = await importPostgres<SqlConstructor>();
  if (!postgres) return null;
  const { hosts, user, password, database, ssl, application_name } = target;
  const given = Object.entries({ user, password, database }).filter(([, value]) => value);
  const sql = postgres({
    ...Object.fromEntries(given),
    host: hosts.map(({ host }) => host),
    port: hosts.map(({ port }) => port),
    ssl,
    connection: { application_name },
  });
  return isPostgresSql(sql) ? postgresJsDriver(sql) : null;
}

/**
 * One connection: an `sql` of its own with at most one connection, which is never used again after
 * that connection has ended.
 */
class Opening implements OpeningConnection {
  readonly opened: Promise<OwnConnection>;
  readonly #options: ParsedOptions;
  readonly #server: number;
  #sql: Sql | null = null;
  #socket: Socket | null = null;
  #isOver = false;
  #isBusy = false;
  #onClose: () => void = () => {};
  #onNotification: (channel: string, payload: string) => void = () => {};
  #onNotice: (routine: string) => void = () => {};

  constructor(options: ParsedOptions, server: number) {
    this.#options = options;
    this.#server = server;
    this.opened = this.#open();
  }

  readonly abandon = (): void => {
    this.#isOver = true;
    this.#socket?.destroy();
    void this.#sql?.end({ timeout: 0 }).catch(() => {});
  };

  async #open(): Promise<OwnConnection> {
    const postgres = await importPostgres<SqlConstructor>();
    if (!postgres) throw new Error("The package that made `sql` was not found.");
    const sql = postgres({
      ...this.#options,
      host: [this.#options.host[this.#server]],
      port: [this.#options.port[this.#server]],
      max: 1,
      idle_timeout: null,
      max_lifetime: null,
      fetch_types: false,
      prepare: true,
      target_session_attrs: null,
      debug: false,
      // State and settings that all connections of the user's `sql` share.
      shared: { retries: 0, typeArrayMap: {} },
      parameters: {},
      parsers: {},
      serializers: {},
      transform: { undefined: undefined, column: {}, value: {}, row: {} },
      onnotify: (channel: string, payload: string) => this.#onNotification(channel, payload),
      onnotice: ({ routine }: { routine?: string }) => this.#onNotice(routine ?? ""),
      onparameter: undefined,
      onclose: () => {
        this.#isOver = true;
        this.#onClose();
      },
      socket: () => this.#connect(),
    });
    this.#sql = sql;
    // The first statement connects.
    const first = sql.unsafe("select 1", [], {});
    await first.raw();
    return this.#own(sql, first.state?.pid ?? 0);
  }

  /** A socket that is connected, and that alone does not keep the process alive. */
  async #connect(): Promise<Socket> {
    const { socket: custom, path } = this.#options;
    const host = this.#options.host[this.#server] ?? "";
    const port = this.#options.port[this.#server] ?? 0;
    if (this.#isOver) throw new Error("The connection has ended.");
    const { connect } = process.getBuiltinModule("node:net");
    const socket = custom
      ? await custom({ ...this.#options, host, port })
      : connect(path ? { path } : { host, port });
    this.#socket = socket;
    socket.unref();
    if (!custom) {
      await new Promise<void>((resolve, reject) => {
        socket.once("connect", resolve);
        socket.once("error", reject);
        socket.once("close", () => reject(new Error("The connection has ended.")));
      });
      socket.setNoDelay(true);
    }
    // For the check of the server's certificate.
    return Object.assign(socket, { host, port });
  }

  #own(sql: Sql, backendPid: number): OwnConnection {
    return {
      backendPid,
      send: (statement) => this.#send(sql, statement),
      onNotification: (listener) => {
        this.#onNotification = listener;
      },
      onNotice: (listener) => {
        this.#onNotice = listener;
      },
      onClose: (listener) => {
        this.#onClose = listener;
        if (this.#isOver) listener();
      },
      close: () => {
        if (this.#isBusy) return this.abandon();
        this.#isOver = true;
        sql.end({ timeout: 0 }).catch(() => {});
      },
    };
  }

  async #send(sql: Sql, { text, values = [], name }: Statement): Promise<string | null> {
    // A new statement would make this `sql` connect again.
    if (this.#isOver) throw new Error("The connection has ended.");
    this.#isBusy = true;
    try {
      const query = sql.unsafe(text, values, { prepare: name !== undefined });
      const rows = await query.raw();
      const [first] = (isSeveral(rows) ? rows.at(-1) : rows) ?? [];
      return first?.[0]?.toString("utf8") ?? null;
    } finally {
      this.#isBusy = false;
    }
  }
}

/** Several statements have one result each; a result is an array with a `command`. */
function isSeveral(rows: Rows | readonly Rows[]): rows is readonly Rows[] {
  return !("command" in rows);
}
