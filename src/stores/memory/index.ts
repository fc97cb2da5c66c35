/**
 * Locks within one process, with nothing to install.
 *
 * Why it is safe: all commands run on the ledger itself, one after the other in this thread, by the
 * very clock that the leases are judged by. A grant's deadline lies before its expiry, so a holder
 * stops believing before the ledger may serve the next. Tokens follow the wall clock in
 * microseconds and the last token given, so they rise within the process and across restarts,
 * unless the wall clock was set back while no process ran.
 */
export { MemorySpace } from "./memory-space.js";
export { type MemoryStoreOptions, memoryStore } from "./memory-store.js";
export { openMemoryStore } from "./memory-url.js";
