import type { StoreError } from "../../errors/index.js";
import { inTransaction, type Sqlite, type Value } from "./client.js";
import { refusal } from "./errors.js";
import { machineIdentity } from "./machine-runtime.js";

/** Version 1 kept holders and waiters in tables of their own. */
const VERSION = 2;

/**
 * No write waits for the disk (`synchronous`): a killed process loses nothing by that, and no lease
 * outlives a crash of the machine. No call waits for another process (`busy_timeout`), so the event
 * loop stays free, see LockFile. A transaction writes whole pages (`page_size`, for a new file): in
 * smaller ones a name with a few waiters runs over into further pages, which are then allocated and
 * freed all the time.
 */
const SETTINGS = `
  PRAGMA busy_timeout = 0;
  PRAGMA page_size = 8192;
  PRAGMA synchronous = OFF;
`;

/** "HFLK", where SQLite keeps a number for the program that a database belongs to. */
export const APPLICATION_ID = 0x48464c4b;
/** Its offset in the first page. */
export const APPLICATION_ID_AT = 68;

/**
 * A row of `name` has the state of one name while it is in use (see NameDocument), or the last
 * token of a namespace. Both are in one table so that in a small file a grant writes one page.
 */
const TABLES = `
  CREATE TABLE machine (identity TEXT NOT NULL, watch TEXT);
  CREATE TABLE name (
    namespace TEXT, key TEXT, body TEXT NOT NULL,
    PRIMARY KEY (namespace, key)
  ) WITHOUT ROWID;
`;

/** The key of the row with the last token; no name has it. */
export const TOKEN_KEY = "";

/**
 * Reads the last token. One that is not a number is ignored: the clock and the clients supply the
 * next. One that is too high to be exact is read as the highest token, which none follows.
 */
export function tokenOf(body: Value | undefined): number {
  if (typeof body !== "string" || !/^\d+$/.test(body)) return 0;
  return Math.min(Number(body), Number.MAX_SAFE_INTEGER);
}

/**
 * Prepares a connection, and the file if it is new. A new file gets its mark with its first page:
 * it is made before the journal becomes a WAL, in which the page would stay apart from the file.
 */
export function prepareSchema(database: Sqlite, path: string): void {
  database.exec(SETTINGS);
  if (numberOf(database, "application_id") !== APPLICATION_ID) makeTables(database, path);
  const version = numberOf(database, "user_version");
  if (version !== VERSION) {
    throw refusal(
      `The lock file ${path} has format ${version}, and this version of holdfast uses format ` +
        `${VERSION}. Use one version of holdfast for all programs that share it; if none uses it ` +
        "any more, move it away with its -wal and -shm.",
    );
  }
  const [mode] = database.get("PRAGMA journal_mode = WAL", []) ?? [];
  if (mode !== "wal") {
    throw refusal(
      `The lock file ${path} cannot be used: SQLite keeps its journal as "${mode}" there. ` +
        "Choose a path on a local file system.",
    );
  }
  // The first read after that makes the -wal and the -shm, which the caller has to know.
  database.get("SELECT identity FROM machine", []);
}

function makeTables(database: Sqlite, path: string): void {
  inTransaction(database, () => {
    // Another process may have been first, also one of another program.
    if (numberOf(database, "application_id") === APPLICATION_ID) return;
    const [tables] = database.get("SELECT count(*) FROM sqlite_master", []) ?? [];
    if (tables !== 0 || numberOf(database, "user_version") !== 0) throw foreignDatabase(path);
    database.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
    database.exec(TABLES);
    database.exec(`PRAGMA user_version = ${VERSION}`);
    database.run("INSERT INTO machine VALUES (?, NULL)", [machineIdentity()]);
  });
}

function foreignDatabase(path: string): StoreError {
  return refusal(
    `The file ${path} is a SQLite database of another program. It was left as it is: choose ` +
      "another path.",
  );
}

function numberOf(database: Sqlite, pragma: "application_id" | "user_version"): number {
  return Number(database.get(`PRAGMA ${pragma}`, [])?.[0]);
}
