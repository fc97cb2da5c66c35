import { closeSync, existsSync, lstatSync, openSync, readdirSync, unlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { prepareFolder } from "./lock-folder.js";
import { machinePort } from "./machine-port.js";

/** Loaded on first use: most programs never wait for another. */
export const net = (): typeof import("node:net") => process.getBuiltinModule("node:net");

/** On some systems the path of a unix socket has at most 104 bytes, with one for its end. */
const MAX_PATH_BYTES = 103;
/** How many sockets of other clients are checked when a process begins to listen. */
const SWEPT = 16;

/** The sockets of the clients of one lock file. */
export class WakeFolder {
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
    if (Buffer.byteLength(path) <= MAX_PATH_BYTES || process.platform !== "linux") return path;
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

  /** False if the client certainly has no socket. */
  mayHave(client: string): boolean {
    return !this.isVisible || existsSync(this.of(client));
  }

  /** Calls back if the system refuses a connection, because no process listens there. */
  ifRefused(client: string, onRefused: () => void): void {
    const socket = net().connect(this.of(client));
    socket.unref();
    socket.on("connect", () => socket.destroy());
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ECONNREFUSED") onRefused();
    });
  }

  /** Removes sockets of killed processes: a few at a time, so that it costs little. */
  sweep(): void {
    if (!this.isVisible) return;
    const found = readdirSync(this.folder);
    const spare = Math.max(0, found.length - SWEPT);
    const start = Math.floor(machinePort.random.fraction() * (spare + 1));
    for (const client of found.slice(start, start + SWEPT)) {
      this.ifRefused(client, () => this.remove(client));
    }
  }

  /** Leaves other files alone: connections to a file that is not a socket are refused as well. */
  remove(client: string): void {
    if (!this.isVisible) return;
    const path = this.of(client);
    try {
      if (lstatSync(path).isSocket()) unlinkSync(path);
    } catch {
      // Another process was faster.
    }
  }

  close(): void {
    if (this.#folderDescriptor !== undefined) closeSync(this.#folderDescriptor);
    this.#folderDescriptor = undefined;
  }
}
