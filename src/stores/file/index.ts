/**
 * Locks among all processes of one machine, in one SQLite file.
 *
 * Why it is safe: every command is the ledger's own code inside one exclusive transaction (or,
 * where the row still says what this process wrote, the one statement it would come to), so there
 * is one order of all commands, and a process killed, stopped or out of disk space leaves a whole
 * transaction or none. Leases are kept by the system's monotonic clock, which all processes share
 * and nobody can set. A client's deadline lies before the expiry in the file, by the same clock, so
 * it stops believing before the next is served. Times of another boot or clock are worth nothing:
 * the file says whose they are, and such leases are watched until they are certainly over. A file
 * that was replaced or deleted is noticed by its inode at the next command, and what was held in it
 * is lost. Tokens follow the wall clock and the last one given, so they rise across restarts and
 * even without the file.
 */
import { fileURLToPath } from "node:url";
import { InvalidOptionError, invalidValue } from "../../errors.js";
import { knownOptions } from "../../known-options.js";
import type { Store } from "../../store.js";
import { ArbiterStore } from "../arbiter/arbiter-store.js";
import { checkNamespace } from "../namespace.js";
import { StoreUrl } from "../store-url.js";
import { FileArbiter } from "./file-arbiter.js";
import { defaultPath } from "./lock-folder.js";

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
 * `libsql`.
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
  const arbiter = new FileArbiter(path ?? defaultPath(), checkNamespace(namespace));
  return new ArbiterStore(arbiter, offerMs === undefined ? {} : { offerMs });
}

/** `file:` is the default file; `file:/folder/locks.db?namespace=x` names one. */
export function openFileStore(url: URL): Store {
  if (url.host !== "") {
    throw new InvalidOptionError("url", url.host, "must name no host: file:/folder/locks.db");
  }
  const read = new StoreUrl(url, { parameters: ["namespace"], isSecure: null });
  const namespace = read.text("namespace") ?? "";
  // `new URL` makes "file:" into "file:///": no file of that name can exist.
  if (url.pathname === "/") return fileStore({ namespace });
  return fileStore({ path: pathOf(url), namespace });
}

function pathOf({ pathname }: URL): string {
  try {
    return fileURLToPath(`file://${pathname}`);
  } catch {
    throw invalidValue("url", "(hidden)", "must have no encoded / in its path");
  }
}
