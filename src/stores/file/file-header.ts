/**
 * Tells by its first page whether a file is a lock file, and whether the files beside it are ours.
 *
 * They are read without SQLite: SQLite would recover, checkpoint or put files beside a database of
 * another program before it says anything about it. To close a file drops all locks of this process
 * on it, so a file that this process has open already is not read: it was known before.
 */
import { lstatSync } from "node:fs";
import { refusal } from "./failure.js";
import { readStart } from "./read-start.js";
import { journalPages } from "./rollback-journal.js";
import { APPLICATION_ID, APPLICATION_ID_AT, FIRST_STATEMENTS } from "./schema.js";

const PAGE = 4096;
const MAGIC = "SQLite format 3\0";
const HEADER = 100;
const VERSION_AT = 60;

/**
 * Throws unless the file is missing, empty or a lock file, and SQLite can use it without a change
 * to a file of another program beside it. All of them are left as they are either way.
 *
 * The page is read last. A process that makes the lock file right now writes its first page before
 * the `-wal` and the `-shm`, and before it puts a page into the journal: if the file is still empty
 * after these were seen, they do not belong to it.
 */
export function demandLockFile(path: string): void {
  const shared = [`${path}-wal`, `${path}-shm`].filter(hasBytes);
  const pages = journalPages(`${path}-journal`);
  const page = readStart(path, PAGE);
  if (page?.length) demandOwnPage(path, page);
  if (pages === "foreign" || (pages === "lock file" && !page?.length)) {
    throw strangeFile(`${path}-journal`, path);
  }
  // Beside a missing file they are allowed: they are moved aside before the file is made.
  if (shared[0] !== undefined && page?.length === 0) throw strangeFile(shared[0], path);
}

function demandOwnPage(path: string, page: Buffer): void {
  if (page.length < HEADER || page.toString("latin1", 0, MAGIC.length) !== MAGIC) {
    throw refusal(
      `The file ${path} is no SQLite database: it is damaged, or belongs to another program. It ` +
        "was left as it is: move it away with its -wal and -shm, or choose another path.",
    );
  }
  const id = page.readUInt32BE(APPLICATION_ID_AT);
  if (id === APPLICATION_ID || (id === 0 && isUnmarked(page))) return;
  throw refusal(
    `The file ${path} is a SQLite database of another program (application_id ${id}, ` +
      `user_version ${page.readUInt32BE(VERSION_AT)}). It was left as it is: choose another path.`,
  );
}

/** A lock file of before they were marked: it has just our tables. */
function isUnmarked(page: Buffer): boolean {
  return FIRST_STATEMENTS.every((statement) => page.includes(statement));
}

function hasBytes(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found !== undefined && !(found.isFile() && found.size === 0);
}

function strangeFile(beside: string, path: string): Error {
  return refusal(
    `The file ${beside} belongs to no lock file, and SQLite would change or delete it together ` +
      `with ${path}. It was left as it is: move it away, or choose another path.`,
  );
}
