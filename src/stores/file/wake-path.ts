import { closeSync, openSync } from "node:fs";
import { dirname, join } from "node:path";
import { prepareFolder } from "./lock-folder.js";

/** The longest path of a unix socket, with a byte for its end, is 104 on some systems. */
const LONGEST = 103;

/** Where the socket of a client is. */
export class WakePath {
  readonly folder: string;
  /** Whether sockets are files that can be looked for. */
  readonly isVisible: boolean = process.platform !== "win32";
  readonly #lockPath: string;
  #pipePrefix: string | undefined;
  #folderDescriptor: number | undefined;

  constructor(lockPath: string) {
    this.folder = `${lockPath}-wake`;
    this.#lockPath = lockPath;
  }

  prepare(): void {
    prepareFolder(dirname(this.folder));
    if (this.isVisible) prepareFolder(this.folder);
  }

  of(client: string): string {
    if (!this.isVisible) return this.#pipe() + client;
    const path = join(this.folder, client);
    if (Buffer.byteLength(path) <= LONGEST || process.platform !== "linux") return path;
    // The folder under a name that is always short enough.
    this.#folderDescriptor ??= openSync(this.folder, "r");
    return `/proc/self/fd/${this.#folderDescriptor}/${client}`;
  }

  /** Pipes have no folders: those of one lock file begin alike. */
  #pipe(): string {
    if (this.#pipePrefix === undefined) {
      const { createHash } = process.getBuiltinModule("node:crypto");
      const digest = createHash("sha256").update(this.#lockPath.toLowerCase()).digest("hex");
      this.#pipePrefix = `\\\\.\\pipe\\holdfast-${digest.slice(0, 16)}-`;
    }
    return this.#pipePrefix;
  }

  close(): void {
    if (this.#folderDescriptor !== undefined) closeSync(this.#folderDescriptor);
    this.#folderDescriptor = undefined;
  }
}
