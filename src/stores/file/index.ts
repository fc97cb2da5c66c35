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

import type { Store } from "../../contract/store.js";
import { InvalidOptionError } from "../../errors/index.js";
import { LedgerStore } from "../../families/ledger/ledger-store.js";
import { knownOptions } from "../../options/known-options.js";
import { checkNamespace } from "../namespace.js";
import { FileArbiter } from "./file-store.js";
import { defaultPath } from "./lock-folder.js";
import { assertMachineClock } from "./machine-runtime.js";
import { readFileUrl } from "./url.js";

/** Where the lock file is, and how it is used. */
export interface FileStoreOptions {
  /**
   * The lock file, on a local file system, in a folder of this user; made when it is missing.
   * Default: `.local/state/holdfast/locks.db` in the home of the password entry, whatever HOME
   * says.
   */
  readonly path?: string;
  /** Locks of different namespaces never meet. Default `""`. */
  readonly namespace?: string;
  /** How long a handed-off grant waits for its confirm. Default: 2 s or a sixth of the ttl. */
  readonly offerMs?: number;
}

const EXAMPLE = "must be an object: fileStore({ path })";

/**
 * Locks for many processes of one machine, with nothing to run. Node 22.13 or later, or the package
 * `libsql`. Not in Bun and Deno, where it throws `UnsupportedError`.
 *
 * @example
 * import { Holdfast } from "holdfast";
 * import { fileStore } from "holdfast/file";
 *
 * const locks = new Holdfast(fileStore({ path: "/var/lib/app/locks.db" }));
 */
export function fileStore(options?: FileStoreOptions): Store {
  const { path, namespace, offerMs } = knownOptions(
    options,
    ["path", "namespace", "offerMs"],
    EXAMPLE,
  );
  if (path !== undefined && (typeof path !== "string" || path === "")) {
    throw new InvalidOptionError("path", path, "must be the path of a file");
  }
  if (path?.startsWith("file:")) {
    throw new InvalidOptionError("path", path, "must be a path; a URL is for connect(url)");
  }
  assertMachineClock();
  const arbiter = new FileArbiter(path ?? defaultPath(), checkNamespace(namespace));
  return new LedgerStore(arbiter, offerMs === undefined ? {} : { offerMs });
}

/** Opens `file:` or `file:/folder/locks.db?namespace=x`. */
export function openFileStore(url: URL): Store {
  return fileStore(readFileUrl(url));
}
