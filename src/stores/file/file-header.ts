/**
 * Checks by its first bytes whether a file is a lock file, and whether the files next to it are
 * ours.
 *
 * They are read without SQLite, which would recover, checkpoint or add files to a database of
 * another program before it says anything about it. Closing a file drops all locks of this process
 * on it, so a file that this process has open is not read: it was checked before.
 */
import { closeSync, lstatSync, openSync, readSync, type Stats } from "node:fs";
import { refusal, systemCode } from "./errors.js";
import { APPLICATION_ID, APPLICATION_ID_AT } from "./protocol.js";

const MAGIC = "SQLite format 3\0";
const HEADER = 100;
const VERSION_AT = 60;

const JOURNAL_MAGIC = "d9d505f920a163d7";
const JOURNAL_HEADER = 28;
const PAGES_AT = 16;
const SECTOR_AT = 20;
const PAGE_SIZE_AT = 24;
const MIN_PAGE = 512;
/** The header fills a sector. A record is the number of a page, the page and a checksum. */
const MAX_SECTOR = 65_536;
const MAX_RECORD = 65_536 + 8;

/**
 * Throws unless the file is missing, empty or a lock file, and SQLite can use it without changing a
 * file of another program next to it. Changes none of them.
 *
 * The header is read last. A process that is making the lock file writes its first page before the
 * `-wal` and the `-shm`, and before it puts a page into the journal: if the file is still empty
 * after these were seen, they do not belong to it.
 */
export function demandLockFile(path: string): void {
  const shared = [`${path}-wal`, `${path}-shm`].filter(hasBytes);
  const pages = journalPages(`${path}-journal`);
  const page = readStart(path, HEADER);
  if (page?.length) demandOwnPage(path, page);
  if (pages === "foreign" || (pages === "lock file" && !page?.length)) {
    throw strangeFile(`${path}-journal`, path);
  }
  // Next to a missing file they are allowed: they are moved away before the file is made.
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
  if (id === APPLICATION_ID) return;
  throw refusal(
    `The file ${path} is a SQLite database of another program (application_id ${id}, ` +
      `user_version ${page.readUInt32BE(VERSION_AT)}). It was left as it is: choose another path.`,
  );
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

/** Whose pages a `-journal` has, which SQLite plays back into the database, or deletes. */
type JournalPages = "none" | "lock file" | "foreign";

/**
 * A process that was killed while it made a lock file leaves a journal without a page, if the
 * database had none, or one that begins with the first page of the lock file, or with part of it.
 */
function journalPages(path: string): JournalPages {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found && !found.isFile()) return "foreign";
  const journal = readStart(path, MAX_SECTOR + MAX_RECORD);
  if (!journal?.length) return "none";
  if (journal.length < JOURNAL_HEADER || journal.toString("hex", 0, 8) !== JOURNAL_MAGIC)
    return "foreign";
  const sector = journal.readUInt32BE(SECTOR_AT);
  const pageSize = journal.readUInt32BE(PAGE_SIZE_AT);
  if (journal.length <= sector && journal.readUInt32BE(PAGES_AT) === 0) return "none";
  if (pageSize < MIN_PAGE) return "foreign";
  const record = journal.subarray(sector);
  if (record.length < pageSize + 8) return "lock file";
  const isFirstPage = record.readUInt32BE(0) === 1;
  const id = record.readUInt32BE(4 + APPLICATION_ID_AT);
  return isFirstPage && id === APPLICATION_ID ? "lock file" : "foreign";
}

/** The first bytes of a file; undefined when it is missing. */
function readStart(path: string, length: number): Buffer | undefined {
  let descriptor: number;
  try {
    descriptor = openSync(path, "r");
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error;
    return undefined;
  }
  try {
    const bytes = Buffer.alloc(length);
    return bytes.subarray(0, readSync(descriptor, bytes, 0, length, 0));
  } finally {
    closeSync(descriptor);
  }
}

/**
 * The files that this process has open as databases, whichever copy of this package opened them.
 * None of them may be opened and closed by other means: that drops the locks of the process.
 */
const SHARED = Symbol.for("holdfast.held-files");

export type FileId = Pick<Stats, "dev" | "ino">;

function counts(): Map<string, number> {
  const shared = globalThis as { [SHARED]?: Map<string, number> };
  shared[SHARED] ??= new Map();
  return shared[SHARED];
}

export function isHeldFile(file: FileId): boolean {
  return counts().has(keyOf(file));
}

export function holdFile(file: FileId): void {
  const key = keyOf(file);
  counts().set(key, (counts().get(key) ?? 0) + 1);
}

export function dropFile(file: FileId): void {
  const key = keyOf(file);
  const left = (counts().get(key) ?? 1) - 1;
  if (left > 0) counts().set(key, left);
  else counts().delete(key);
}

function keyOf({ dev, ino }: FileId): string {
  return `${dev}:${ino}`;
}

export function isSameFile(a: FileId, b: FileId): boolean {
  return a.ino === b.ino && a.dev === b.dev;
}
