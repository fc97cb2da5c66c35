/**
 * Whose file it is, by its first page.
 *
 * The page is read without SQLite: SQLite would recover, checkpoint or put files beside a database
 * of another program before it says anything about it. To close a file drops all locks of this
 * process on it, so a file that this process has open already is not read: it was known before.
 */
import { closeSync, openSync, readSync, type Stats } from "node:fs";
import { StoreError } from "../../errors.js";
import { APPLICATION_ID, STATEMENTS } from "./schema.js";

const PAGE = 4096;
const MAGIC = "SQLite format 3\0";
const HEADER = 100;
const VERSION_AT = 60;
const ID_AT = 68;

/** Throws unless the file is empty or a lock file; it is left as it is either way. */
export function demandLockFile(path: string, { size }: Stats): void {
  if (size === 0) return;
  const page = readPage(path);
  if (page.length < HEADER || page.toString("latin1", 0, MAGIC.length) !== MAGIC) {
    throw refusal(
      `The file ${path} is no SQLite database: it is damaged, or belongs to another program. It ` +
        "was left as it is: move it away with its -wal and -shm, or choose another path.",
    );
  }
  const id = page.readUInt32BE(ID_AT);
  if (id === APPLICATION_ID || (id === 0 && isUnmarked(page))) return;
  throw refusal(
    `The file ${path} is a SQLite database of another program (application_id ${id}, ` +
      `user_version ${page.readUInt32BE(VERSION_AT)}). It was left as it is: choose another path.`,
  );
}

/** A lock file of before they were marked: it has just our tables. */
function isUnmarked(page: Buffer): boolean {
  return STATEMENTS.every((statement) => page.includes(statement));
}

function readPage(path: string): Buffer {
  const page = Buffer.alloc(PAGE);
  const descriptor = openSync(path, "r");
  try {
    return page.subarray(0, readSync(descriptor, page, 0, PAGE, 0));
  } finally {
    closeSync(descriptor);
  }
}

function refusal(message: string): StoreError {
  return new StoreError(message, { outcome: "not_applied", retryable: false, store: "file" });
}
