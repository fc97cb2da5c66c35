/**
 * Locks in Postgres.
 *
 * Why it is safe: a function in the database follows the rules of the ledger. A batch changes the
 * rows of its names under their locks, so of two batches about one name the later one sees what the
 * earlier one did. It reads the clock after it has locked them; a short path reads it before, which
 * only makes a lease shorter. A batch is one transaction: all of it happens, or nothing. The
 * deadline of a holder counts from the sending of its request and lies before the expiry in its
 * row, so a holder stops believing before the server may grant again, unless the clock of the
 * server jumps. A crash or a failover may lose the last commits. Each process of the server notices
 * that by a row that no crash and no failover keeps, and then grants free names only when every
 * lease that may be lost has expired. Tokens rise with the clock and with the highest token that
 * any client saw.
 */

import type { Store } from "../../contract/store.js";
import { InvalidOptionError, invalidValue } from "../../errors/index.js";
import { LedgerStore } from "../../families/ledger/ledger-store.js";
import { knownOptions } from "../../options/known-options.js";
import { networkRuntime } from "../../time/runtime.js";
import { checkNamespace } from "../namespace.js";
import { type Driver, driverOf, isPostgresClient, type PostgresClients } from "./client.js";
import { migrate, type PostgresMigrationOptions } from "./migration.js";
import { PostgresArbiter } from "./postgres-store.js";
import { PrimaryConnection } from "./primary-connection.js";

export { type PostgresMigrationOptions, postgresMigration } from "./migration.js";
export type { PgClient, PgPool } from "./pg.js";
export type { PostgresSql } from "./postgres-js.js";

/** The client, exactly one of `pool`, `client` and `sql`, and the namespace. */
export interface PostgresStoreOptions extends PostgresClients {
  /**
   * Locks in different namespaces are independent, even if their names are equal. Default: empty.
   */
  readonly namespace?: string;
  /**
   * Set this if every commit waits for a standby (`synchronous_standby_names` is set, and
   * `synchronous_commit` is not `off` or `local`) and only such a standby is ever promoted. A
   * failover then loses no lease, and the store grants free names right after it. Default false.
   */
  readonly hasSynchronousStandby?: boolean;
  /** How long a handed-off grant waits for its confirm. Default: 2 s or a sixth of the ttl. */
  readonly offerMs?: number;
}

type Settings = Omit<PostgresStoreOptions, keyof PostgresClients>;

const NUMBERS = ["offerMs"] as const;
const KNOWN = ["pool", "client", "sql", "namespace", "hasSynchronousStandby", ...NUMBERS] as const;
const EXAMPLE = "must be an object with the client in it: postgresStore({ pool })";

/**
 * Locks in Postgres. The store opens one connection of its own, with the settings of the client
 * that it is given, so that it never waits for a free connection of a pool. Throws
 * `InvalidOptionError` if it cannot use the client.
 *
 * @example
 * import { Holdfast } from "holdfast";
 * import { postgresStore } from "holdfast/postgres";
 * import { Pool } from "pg";
 *
 * const locks = new Holdfast(postgresStore({ pool: new Pool() }));
 */
export function postgresStore(options: PostgresStoreOptions): Store {
  if (isPostgresClient(options)) throw invalidValue("options", "a client", EXAMPLE);
  const { pool, client, sql, ...settings } = knownOptions(options, KNOWN, EXAMPLE);
  const clients = { ...(pool && { pool }), ...(client && { client }), ...(sql && { sql }) };
  return makeStore(makeArbiter(driverOf(clients), settings), settings);
}

/**
 * Opens `postgres://user:password@host:5432/database`. Of several hosts, `host1,host2`, it uses the
 * one that accepts writes. The parameters are `sslmode` (`disable`, the default, `require`,
 * `verify-ca` or `verify-full`), the TLS files `ca`, `cert` and `key`, and the options `namespace`
 * and `offerMs`. Uses the package pg if it is installed, otherwise postgres.
 */
export async function openPostgresStore(url: URL): Promise<Store> {
  // A program that brings its own client does not load this.
  const { readPostgresUrl } = await import("./url.js");
  const { driver, options } = await readPostgresUrl(url, NUMBERS);
  const arbiter = makeArbiter(driver, options);
  try {
    const store = makeStore(arbiter, options);
    await arbiter.connected();
    return store;
  } catch (error) {
    await arbiter.close();
    throw error;
  }
}

/** Runs the SQL of `postgresMigration` at the database of a URL, in one transaction. */
export async function applyPostgresMigration(
  url: URL,
  { role }: PostgresMigrationOptions = {},
): Promise<void> {
  const { readPostgresUrl } = await import("./url.js");
  const { driver } = await readPostgresUrl(url, NUMBERS);
  const connection = new PrimaryConnection(driver, networkRuntime(), async () => {});
  try {
    await migrate(await connection.ready(), role);
  } finally {
    connection.close();
  }
}

function makeArbiter(driver: Driver, settings: Settings): PostgresArbiter {
  const { namespace, hasSynchronousStandby = false } = settings;
  if (typeof hasSynchronousStandby !== "boolean") {
    const rule = "must be true or false";
    throw new InvalidOptionError("hasSynchronousStandby", hasSynchronousStandby, rule);
  }
  const arbiterOptions = { namespace: checkNamespace(namespace), hasSynchronousStandby };
  return new PostgresArbiter(driver, arbiterOptions);
}

function makeStore(arbiter: PostgresArbiter, { offerMs }: Settings): Store {
  return new LedgerStore(arbiter, offerMs === undefined ? {} : { offerMs });
}
