/**
 * Locks among all processes of one machine, in one SQLite file.
 *
 * Why it is safe: every batch of commands is one exclusive transaction that reads the document of a
 * name, runs the ledger on it and writes it back. So all commands have one order, and a process
 * that is killed, stopped or out of disk space leaves a whole transaction or none. Leases are timed
 * by the system's monotonic clock, which all processes share and none can set. A client's deadline
 * is before the expiry in the file, by the same clock, so the client stops before the next is
 * served. Times of another boot or clock mean nothing here: the file says whose clock they belong
 * to, and such leases are watched until they have certainly expired. The next command notices by
 * the inode that the file was replaced or deleted, and what was held in it is lost. Tokens follow
 * the wall clock and the last one issued, so they rise across restarts, even without the file.
 */
export { type FileStoreOptions, fileStore } from "./file-store.js";
export { openFileStore } from "./file-url.js";
