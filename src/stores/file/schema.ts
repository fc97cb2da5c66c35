import { StoreError } from "../../errors.js";
import { machineIdentity } from "./machine-identity.js";
import { inTransaction, type Sqlite } from "./sqlite.js";

const VERSION = 1;

/**
 * No write waits for the disk (`synchronous`): a killed process loses nothing by that, and a
 * machine that crashed takes all leases with it anyway. No call waits for another process
 * (`busy_timeout`): the event loop has better things to do, see LockFile. Every transaction writes
 * whole the pages it touched (`page_size`, for a new file): in smaller ones a row with a holder and
 * a waiter runs over into further pages, which are then taken and given back all the time.
 */
const SETTINGS = `
  PRAGMA busy_timeout = 0;
  PRAGMA page_size = 4096;
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = OFF;
`;

/**
 * A name has a row in `name` while anything of it is there (see NameRecord); its holders and
 * waiters have rows of their own only where they are many.
 */
const TABLES = `
  CREATE TABLE machine (identity TEXT NOT NULL, watch TEXT);
  CREATE TABLE space (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, token INTEGER NOT NULL);
  CREATE TABLE name (
    space INTEGER, key TEXT, body TEXT NOT NULL,
    PRIMARY KEY (space, key)
  ) WITHOUT ROWID;
  CREATE TABLE holder (
    space INTEGER, key TEXT, token INTEGER, owner TEXT NOT NULL, client TEXT NOT NULL,
    expiry INTEGER NOT NULL, confirmed INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (space, key, token)
  ) WITHOUT ROWID;
  CREATE UNIQUE INDEX holder_owner ON holder (space, key, owner);
  CREATE INDEX holder_expiry ON holder (space, key, expiry, token);
  CREATE INDEX holder_claim ON holder (space, key, client) WHERE confirmed = 0;
  CREATE TABLE waiter (
    space INTEGER, key TEXT, client TEXT, place INTEGER, owner TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (space, key, client, place)
  ) WITHOUT ROWID;
  CREATE UNIQUE INDEX waiter_owner ON waiter (space, key, owner);
  CREATE TABLE client (
    space INTEGER, key TEXT, id TEXT, touch INTEGER NOT NULL, gone INTEGER NOT NULL,
    waiting INTEGER NOT NULL, suspect INTEGER NOT NULL, place INTEGER NOT NULL,
    PRIMARY KEY (space, key, id)
  ) WITHOUT ROWID;
  CREATE INDEX client_place ON client (space, key, suspect, place);
  CREATE TABLE tombstone (
    space INTEGER, key TEXT, owner TEXT, until INTEGER NOT NULL, reason TEXT,
    PRIMARY KEY (space, key, owner)
  ) WITHOUT ROWID;
  PRAGMA user_version = ${VERSION};
`;

/** Prepares a connection, and the file if it is new. */
export function prepareSchema(database: Sqlite, path: string): void {
  database.exec(SETTINGS);
  const [mode] = database.get("PRAGMA journal_mode", []) ?? [];
  if (mode !== "wal") throw unsuitable(path, `SQLite keeps its journal as "${mode}" there`);
  if (versionOf(database) === 0) create(database);
  const version = versionOf(database);
  if (version === VERSION) return;
  throw unsuitable(path, `it has version ${version}, and this program knows only ${VERSION}`);
}

function unsuitable(path: string, why: string): StoreError {
  return new StoreError(
    `The lock file ${path} cannot be used: ${why}. Use one version of holdfast for all programs ` +
      "that share a file, on a local file system.",
    { outcome: "not_applied", retryable: false, store: "file" },
  );
}

function create(database: Sqlite): void {
  inTransaction(database, () => {
    // Another process may have been first.
    if (versionOf(database) !== 0) return;
    database.exec(TABLES);
    database.run("INSERT INTO machine VALUES (?, NULL)", [machineIdentity()]);
  });
}

function versionOf(database: Sqlite): number {
  return Number(database.get("PRAGMA user_version", [])?.[0]);
}
