import type { Store } from "../../contract/store.js";
import { InvalidOptionError } from "../../errors/index.js";
import { LedgerStore } from "../../families/ledger/ledger-store.js";
import { knownOptions } from "../../options/known-options.js";
import { checkNamespace } from "../namespace.js";
import { FileArbiter } from "./file-arbiter.js";
import { defaultPath } from "./lock-folder.js";
import { assertMachineClock } from "./machine-port.js";

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
