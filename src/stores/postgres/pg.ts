import { importPg } from "../peers.js";
import type { Address } from "../store-url.js";
import type {
  Driver,
  OpeningConnection,
  OwnConnection,
  PostgresTarget,
  Statement,
} from "./client.js";

/** The members by which a pool of `pg` is recognized. */
export interface PgPool {
  /** The options that the store connects with. */
  readonly options: object;
  /** Not called by the store. */
  connect(...args: never[]): unknown;
  /** Not called by the store. */
  query(...args: never[]): unknown;
}

/** The members by which a client of `pg` is recognized. */
export interface PgClient {
  /** The host of the server. */
  readonly host: string;
  /** The port of the server. */
  readonly port: number;
  /** Not called by the store. */
  connect(...args: never[]): unknown;
  /** Not called by the store. */
  query(...args: never[]): unknown;
}

/** The used members of a client of `pg` from version 8.7 on, which brought `unref`. */
interface Client {
  readonly host?: string;
  readonly port?: number;
  readonly processID: number | null;
  readonly connectionParameters: object;
  readonly connection: { readonly stream: { destroy(): unknown; unref?(): unknown } };
  connect(): Promise<unknown>;
  query(statement: PgStatement): PgStatement;
  query(query: object): Promise<Result | readonly Result[]>;
  on(event: string, listener: (...args: never[]) => void): unknown;
  end(): Promise<unknown>;
  unref(): void;
}

interface Result {
  readonly rows: readonly (readonly unknown[])[];
}

type ClientConstructor = new (config: object) => Client;

/** Values as the server wrote them, whatever parsers the application has set. */
const TEXTS = { getTypeParser: () => (text: unknown) => text };

export function isPgPool(value: unknown): value is PgPool {
  const { Client, options, connect } = (value ?? {}) as Partial<PgPool & { Client: unknown }>;
  const isPool = typeof options === "object" && typeof connect === "function";
  return isPool && isSupported(Client);
}

export function isPgClient(value: unknown): value is PgClient {
  const client = (value ?? {}) as Partial<Client> & object;
  const { connectionParameters, query } = client;
  const isClient = typeof connectionParameters === "object" && typeof query === "function";
  return isClient && isSupported(client.constructor);
}

function isSupported(Client: unknown): Client is ClientConstructor {
  return typeof Client === "function" && typeof Client.prototype?.unref === "function";
}

/** Connections like those of a pool or of a client of the user. */
export function pgDriver(from: PgPool | PgClient): Driver {
  if (isPgPool(from)) {
    const { Client, options } = from as PgPool & { Client: ClientConstructor };
    return driver(Client, options, [{}]);
  }
  const client = from as unknown as Client;
  return driver(client.constructor as ClientConstructor, client.connectionParameters, [{}]);
}

/** Connections to the servers of a URL; null where `pg` is not installed, or too old. */
export async function loadPgDriver({ hosts, ...target }: PostgresTarget): Promise<Driver | null> {
  const pg = await importPg<PgModule>();
  return pg && isSupported(pg.Client) ? driver(pg.Client, target, hosts) : null;
}

interface PgModule {
  readonly Client: ClientConstructor;
}

function driver(
  Client: ClientConstructor,
  given: object,
  hosts: readonly Partial<Address>[],
): Driver {
  // `pg` hides the password: a spread would leave it out.
  const { password } = given as { password?: unknown };
  const make = (host: object): Client =>
    new Client({
      ...given,
      ...(password === undefined ? {} : { password }),
      ...host,
      keepAlive: true,
      // The store has limits of its own.
      connectionTimeoutMillis: 0,
      query_timeout: 0,
      pipeline: false,
    });
  return {
    servers: hosts.map((address) => {
      const { host, port } = make(address);
      return `${host}:${port}`;
    }),
    open: (server) => opening(make(hosts[server] ?? {})),
  };
}

function opening(client: Client): OpeningConnection {
  // A failure also shows in the answer to a statement, or as the end of the connection.
  client.on("error", () => {});
  const abandon = (): void => void client.connection.stream.destroy();
  // The connection alone must not keep the process alive.
  client.connection.stream.unref?.();
  const opened = client.connect().then(() => {
    client.unref();
    return own(client, abandon);
  });
  return { opened, abandon };
}

function own(client: Client, abandon: () => void): OwnConnection {
  let isBusy = false;
  return {
    backendPid: client.processID ?? 0,
    async send(statement: Statement) {
      isBusy = true;
      try {
        return await answerOf(client, statement);
      } finally {
        isBusy = false;
      }
    },
    onNotification(listener) {
      client.on("notification", ({ channel, payload }: { channel: string; payload?: string }) => {
        listener(channel, payload ?? "");
      });
    },
    onNotice(listener) {
      client.on("notice", ({ routine }: { routine?: string }) => listener(routine ?? ""));
    },
    onClose(listener) {
      client.on("error", listener);
      client.on("end", listener);
    },
    close() {
      // A server that does not answer would not close its end either.
      if (isBusy) return abandon();
      client.end().catch(() => {});
    },
  };
}

async function answerOf(
  client: Client,
  { text, values = [], name }: Statement,
): Promise<string | null> {
  if (name !== undefined) {
    return await new Promise((resolve, reject) => {
      client.query(new PgStatement({ name, text, values }, resolve, reject));
    });
  }
  const results = await client.query({ text, values, rowMode: "array", types: TEXTS });
  const last = Array.isArray(results) ? results.at(-1) : results;
  const value = last?.rows[0]?.[0];
  return typeof value === "string" ? value : null;
}

/** The used members of a connection of `pg` 8. */
interface Connection {
  readonly stream: { cork?(): void; uncork?(): void };
  /** By name, the texts of the statements that the server has. */
  readonly parsedStatements: Readonly<Record<string, string>>;
  parse(statement: { readonly text: string; readonly name: string }): void;
  bind(portal: { readonly statement: string; readonly values: readonly unknown[] }): void;
  execute(portal: { readonly portal: string; readonly rows: number }): void;
  sync(): void;
  sendCopyFail(reason: string): void;
}

/**
 * A prepared statement whose answer is one text, as an object that `pg` submits. A query of `pg`
 * itself asks for the description of the columns each time, and makes a result of rows.
 */
export class PgStatement {
  readonly name: string;
  readonly text: string;
  readonly #values: readonly unknown[];
  readonly #resolve: (answer: string | null) => void;
  readonly #reject: (error: unknown) => void;
  #answer: string | null = null;

  constructor(
    { name, text, values }: { name: string; text: string; values: readonly unknown[] },
    resolve: (answer: string | null) => void,
    reject: (error: unknown) => void,
  ) {
    this.name = name;
    this.text = text;
    this.#values = values;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  submit(connection: Connection): null {
    const { name, text } = this;
    connection.stream.cork?.();
    try {
      if (connection.parsedStatements[name] !== text) connection.parse({ text, name });
      connection.bind({ statement: name, values: this.#values });
      connection.execute({ portal: "", rows: 0 });
      connection.sync();
    } finally {
      connection.stream.uncork?.();
    }
    return null;
  }

  handleDataRow({ fields: [value] }: { readonly fields: readonly unknown[] }): void {
    if (typeof value === "string") this.#answer = value;
  }

  handleError(error: unknown): void {
    this.#reject(error);
  }

  handleReadyForQuery(): void {
    this.#resolve(this.#answer);
  }

  handleRowDescription(): void {}
  handleCommandComplete(): void {}
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
  handleCopyData(): void {}

  handleCopyInResponse(connection: Connection): void {
    connection.sendCopyFail("There are no data to copy.");
  }
}
