import type { StoreError } from "../../errors.js";
import { refusal } from "./failure.js";
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
  PRAGMA synchronous = OFF;
`;

/** "HFLK", where SQLite keeps a number for the program that a database belongs to. */
export const APPLICATION_ID = 0x48464c4b;
/** Where it stands in the first page. */
export const APPLICATION_ID_AT = 68;

/**
 * A name has a row in `name` while anything of it is there (see NameRecord); its holders and
 * waiters have rows of their own only where they are many. The first version made these.
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
  CREATE INDEX holder_offer ON holder (space, key, client) WHERE confirmed = 0;
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
`;

/** Made when they are missing: files of earlier versions lack them. */
const INDEXES = `
  CREATE INDEX IF NOT EXISTS client_gone ON client (space, key, gone);
  CREATE INDEX IF NOT EXISTS tombstone_end ON tombstone (space, key, until);
`;
const INDEX_COUNT =
  "SELECT count(*) FROM sqlite_master WHERE name IN ('client_gone', 'tombstone_end')";

/** As they stand in every lock file, each of them. */
export const FIRST_STATEMENTS: readonly string[] = TABLES.split(";")
  .map((statement) => statement.trim())
  .filter((statement) => statement !== "");

/**
 * Prepares a connection, and the file if it is new. A new file gets its mark with its first page:
 * it is made before the journal becomes a WAL, in which the page would stay apart from the file.
 */
export function prepareSchema(database: Sqlite, path: string): void {
  database.exec(SETTINGS);
  if (numberOf(database, "application_id") !== APPLICATION_ID) mark(database, path);
  const version = numberOf(database, "user_version");
  if (version !== VERSION) {
    throw unsuitable(path, `it has version ${version}, and this program knows only ${VERSION}`);
  }
  const [mode] = database.get("PRAGMA journal_mode = WAL", []) ?? [];
  if (mode !== "wal") throw unsuitable(path, `SQLite keeps its journal as "${mode}" there`);
  // The first look after that makes the -wal and the -shm: who opened the file has to know them.
  if (database.get(INDEX_COUNT, [])?.[0] === 2) return;
  // Another process may make them at the same time: it is busy, or was first.
  inTransaction(database, () => database.exec(INDEXES));
}

function unsuitable(path: string, why: string): StoreError {
  return refusal(
    `The lock file ${path} cannot be used: ${why}. Use one version of holdfast for all programs ` +
      "that share a file, on a local file system.",
  );
}

/** Makes a new lock file, or marks one that was made before they were marked. */
function mark(database: Sqlite, path: string): void {
  inTransaction(database, () => {
    // Another process may have been first, also one of another program.
    if (numberOf(database, "application_id") === APPLICATION_ID) return;
    const found = new Set(database.all("SELECT sql FROM sqlite_master", []).map(([sql]) => sql));
    const isNew = found.size === 0 && numberOf(database, "user_version") === 0;
    if (!isNew && !FIRST_STATEMENTS.every((statement) => found.has(statement))) {
      throw unsuitable(path, "it is a database of another program");
    }
    database.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
    if (!isNew) return;
    database.exec(TABLES);
    database.exec(`PRAGMA user_version = ${VERSION}`);
    database.run("INSERT INTO machine VALUES (?, NULL)", [machineIdentity()]);
  });
}

function numberOf(database: Sqlite, pragma: "application_id" | "user_version"): number {
  return Number(database.get(`PRAGMA ${pragma}`, [])?.[0]);
}
