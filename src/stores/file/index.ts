/**
 * Locks among all processes of one machine, in one SQLite file.
 *
 * Why it is safe: every command is the ledger's own code inside one exclusive transaction (or, for
 * a name that no other client uses, the one statement it would come to), so there is one order of
 * all commands, and a process killed, stopped or out of disk space leaves a whole transaction or
 * none. Leases are kept by the system's monotonic clock, which all processes share and none can
 * set. A client's deadline lies before the expiry in the file, by the same clock, so it stops
 * believing before the next is served. Times of another boot or clock are worth nothing: the file
 * says whose they are, and such leases are watched until they are certainly over. A file that was
 * replaced or deleted is noticed by its inode at the next command, and what was held in it is lost.
 * Tokens follow the wall clock and the last one given, so they rise across restarts and even
 * without the file.
 */
export { type FileStoreOptions, fileStore } from "./file-store.js";
export { openFileStore } from "./file-url.js";
