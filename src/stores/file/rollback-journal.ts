/** Whose `-journal` it is. SQLite plays it back into the database beside it, or deletes it. */
import { lstatSync } from "node:fs";
import { readStart } from "./read-start.js";
import { APPLICATION_ID, APPLICATION_ID_AT } from "./schema.js";

const MAGIC = "d9d505f920a163d7";
const HEADER = 28;
const PAGES_AT = 16;
const SECTOR_AT = 20;
const PAGE_SIZE_AT = 24;
const LEAST_PAGE = 512;
/** The header fills a sector; a record is the number of a page, the page and a checksum. */
const MOST_SECTOR = 65_536;
const MOST_RECORD = 65_536 + 8;

/** Whose pages a journal holds: none at all, those of a lock file, those of another program. */
export type JournalPages = "none" | "lock file" | "foreign";

/**
 * A process that was killed while it made a lock file left a journal of ours: without a page, for a
 * database that had none; or beginning with the first page of the lock file, or with a part of it.
 */
export function journalPages(path: string): JournalPages {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found && !found.isFile()) return "foreign";
  const journal = readStart(path, MOST_SECTOR + MOST_RECORD);
  if (!journal?.length) return "none";
  if (journal.length < HEADER || journal.toString("hex", 0, 8) !== MAGIC) return "foreign";
  const sector = journal.readUInt32BE(SECTOR_AT);
  const pageSize = journal.readUInt32BE(PAGE_SIZE_AT);
  if (journal.length <= sector && journal.readUInt32BE(PAGES_AT) === 0) return "none";
  if (pageSize < LEAST_PAGE) return "foreign";
  const record = journal.subarray(sector);
  if (record.length < pageSize + 8) return "lock file";
  const isFirstPage = record.readUInt32BE(0) === 1;
  const id = record.readUInt32BE(4 + APPLICATION_ID_AT);
  return isFirstPage && id === APPLICATION_ID ? "lock file" : "foreign";
}
