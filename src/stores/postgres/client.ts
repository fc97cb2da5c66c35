import { InvalidOptionError, invalidValue } from "../../errors/index.js";
import type { Address } from "../store-url.js";
import { isPgClient, isPgPool, type PgClient, type PgPool, pgDriver } from "./pg.js";
import { isPostgresSql, type PostgresSql, postgresJsDriver } from "./postgres-js.js";

export interface Statement {
  readonly text: string;
  /** Without values, `text` may have several statements. */
  readonly values?: readonly string[];
  /** The server keeps the plan of the statement under this name. */
  readonly name?: string;
}

/** A connection to one server that only the store uses. It never reconnects. */
export interface OwnConnection {
  /**
   * The process id of the server, as announced when the connection started. A pooler invents one.
   */
  readonly backendPid: number;
  /**
   * The text in the first column of the first row; null where there is none. The next statement
   * waits for this answer.
   */
  send(statement: Statement): Promise<string | null>;
  onNotification(listener: (channel: string, payload: string) => void): void;
  /** `routine`: the function in the source of the server that gave the notice. */
  onNotice(listener: (routine: string) => void): void;
  onClose(listener: (cause?: unknown) => void): void;
  close(): void;
}

/** A client library behind one interface: it opens connections like those of the user. */
export interface Driver {
  /** The addresses of the servers, for error messages. Any of them may accept writes. */
  readonly servers: readonly string[];
  /** Connects to one of the servers, by its index. */
  open(server: number): OpeningConnection;
}

/** The servers of a URL, and how to log in there, independent of the client library. */
export interface PostgresTarget {
  readonly hosts: readonly Address[];
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly database: string | undefined;
  /** As Node has them; false: connections are not encrypted. */
  readonly ssl: object | false;
  readonly application_name: string;
}

/** A connection that is being made. */
export interface OpeningConnection {
  readonly opened: Promise<OwnConnection>;
  /** Ends the connection at once, also while it is being made. */
  readonly abandon: () => void;
}

/** The clients that a store can be opened with. */
export interface PostgresClients {
  /** A pool of pg 8.7 or later. The store takes none of its connections, and never closes it. */
  readonly pool?: PgPool;
  /** A client of pg 8.7 or later, connected or not. The store sends nothing through it. */
  readonly client?: PgClient;
  /** The `sql` of postgres 3. The store takes none of its connections, and never closes it. */
  readonly sql?: PostgresSql;
}

/** Whether the value is one of the supported clients. */
export function isPostgresClient(value: unknown): boolean {
  return isPgPool(value) || isPgClient(value) || isPostgresSql(value);
}

const RULE = "must be one of pool and client (of pg 8.7 or later) and sql (of postgres 3)";

/** Recognizes the supported clients by their members; it imports no client library. */
export function driverOf({ pool, client, sql }: PostgresClients): Driver {
  const given = [pool, client, sql].filter((one) => one !== undefined);
  if (given.length !== 1) {
    const words = given.length === 0 ? "none" : "several";
    throw invalidValue("pool", words, `${RULE}: exactly one of them`);
  }
  if (isPgPool(pool)) return pgDriver(pool);
  if (isPgClient(client)) return pgDriver(client);
  if (isPostgresSql(sql)) return postgresJsDriver(sql);
  const [name] = Object.entries({ pool, client, sql }).find(([, one]) => one !== undefined) ?? [];
  throw new InvalidOptionError(name ?? "pool", typeof given[0], RULE);
}
