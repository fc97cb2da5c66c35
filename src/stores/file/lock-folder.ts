import {
  closeSync,
  lstatSync,
  mkdirSync,
  openSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  statfsSync,
  statSync,
} from "node:fs";
import { userInfo } from "node:os";
import { dirname, isAbsolute, join, relative, resolve } from "node:path";
import type { StoreError } from "../../errors/index.js";
import { BeingMadeError, refusal, systemCode } from "./errors.js";
import { demandLockFile, type FileId, isSameFile } from "./file-header.js";
import { machineRuntime } from "./machine-runtime.js";

/**
 * The default file. It comes from the password entry and never from HOME or XDG_*: cron, a service
 * and a shell of one user differ in those, and must exclude each other. A user without an entry is
 * refused: an entry can also be missing for a while (a directory service that is down), and a
 * second place would let two processes of that user hold one lock.
 */
export function defaultPath(): string {
  const home = homeOfEntry();
  if (isAbsolute(home)) return join(home, ".local", "state", "holdfast", "locks.db");
  throw refusal(
    `The default lock file is in the home of the user, and the password entry of uid ` +
      `${process.geteuid?.()} has none. Name the file or another store: fileStore({ path }), ` +
      "connect(url), --store or HOLDFAST_STORE.",
  );
}

/** Empty for a user without a password entry, as containers have: the system throws then. */
function homeOfEntry(): string {
  try {
    return userInfo().homedir;
  } catch {
    return "";
  }
}

/** File systems whose locks, shared memory or clocks reach over more than one machine. */
export const NETWORK: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xff534d42, "CIFS"],
  [0xfe534d42, "SMB"],
  [0x65735546, "FUSE"],
  [0x01021997, "9P"],
  [0x5346414f, "AFS"],
  [0x6b414653, "AFS"],
  [0x73757245, "Coda"],
  [0x00c36400, "Ceph"],
  [0x47504653, "GPFS"],
  [0x0bd00bd0, "Lustre"],
  [0x7461636f, "OCFS2"],
  [0x01161970, "GFS2"],
  [0x786f4256, "a VirtualBox shared folder"],
  [0xaad7aaea, "PanFS"],
  [0x19830326, "BeeGFS"],
]);

/**
 * Makes sure that the folder is there, local and ours, and that the file is there; returns its
 * path.
 */
export function prepareFile(path: string): string {
  const full = resolve(path);
  prepareFolder(dirname(full));
  try {
    // Never opened when it exists: closing it would drop the locks of this process on it.
    closeSync(openSync(full, "wx", 0o600));
  } catch (error) {
    if (systemCode(error) !== "EEXIST") throw unusable(full, error);
  }
  demandFile(full);
  demandOwn(full, "file");
  return full;
}

/** The path without symbolic links: all who lead to one file share what lies beside it. */
export function realPath(path: string): string {
  const full = resolve(path);
  for (const known of [full, dirname(full)]) {
    try {
      return join(realpathSync(known), relative(known, full));
    } catch {
      // The folder is not there yet, or cannot be: the call that makes it says what is wrong.
    }
  }
  return full;
}

export function prepareFolder(folder: string): void {
  try {
    makeFolder(folder);
  } catch (error) {
    throw unusable(folder, error);
  }
  demandOwn(folder, "folder");
  if (process.platform !== "linux") return;
  const network = NETWORK.get(statfsSync(folder).type >>> 0);
  if (network !== undefined) {
    throw refusal(
      `The folder ${folder} is on ${network}: the file store works on local file systems only. ` +
        "Choose a local path, or a store across the network.",
    );
  }
}

/** Step by step: Node's own recursive way never ends where the system makes no folders (/proc). */
function makeFolder(folder: string): void {
  const found = statSync(folder, { throwIfNoEntry: false });
  if (found && !found.isDirectory()) throw new Error("it is no folder");
  if (found) return;
  if (dirname(folder) !== folder) makeFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if (systemCode(error) !== "EEXIST") throw error;
  }
}

function demandFile(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isFile()) return;
  if (found?.isDirectory()) {
    throw refusal(`${path} is a folder: name a file in it, such as ${join(path, "locks.db")}.`);
  }
  if (found) throw refusal(`${path} is no regular file. Choose another path.`);
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink();
  if (!isLink) throw new BeingMadeError("Another process has just removed the file.");
  throw refusal(`${path} is a symbolic link to a file that is not there. Choose another path.`);
}

/** Another user who owns the file or folder can replace it at any time. */
function demandOwn(path: string, what: "file" | "folder"): void {
  const uid = process.geteuid?.();
  const owner = statSync(path).uid;
  if (uid === undefined || owner === uid) return;
  throw refusal(
    `The ${what} ${path} belongs to another user (uid ${owner}, this process runs as ${uid}). ` +
      "Choose a path in a folder of your own.",
  );
}

function unusable(path: string, cause: unknown): StoreError {
  const message = cause instanceof Error ? cause.message : String(cause);
  if (systemCode(cause) === "ENOSPC")
    return refusal(`The disk of ${path} is full: free some space.`, cause);
  return refusal(`${path} cannot be used for locks: ${message}. Choose another path.`, cause);
}

/** A process that has been making the file for so long was killed meanwhile. */
const ABANDONED_MS = 2_000;

const pathsBeside = (path: string): string[] => [`${path}-wal`, `${path}-shm`];

/** The `-wal` and `-shm` that SQLite made beside a lock file. */
export function filesBeside(path: string): FileId[] {
  return pathsBeside(path).flatMap((beside) => {
    const found = statSync(beside, { throwIfNoEntry: false });
    return found ? [found] : [];
  });
}

/**
 * Makes the lock file where none stands, or where another took its place. The file that was there
 * may have left its `-wal` and `-shm` behind, and SQLite would take them for those of the new file.
 * One process at a time removes those that belonged to its own connection (`ours`). Those of a file
 * that is gone may hold data of another program: they are moved aside.
 */
export function makeRoom(path: string, ours: readonly FileId[]): void {
  prepareFolder(dirname(path));
  const guard = `${path}-clearing`;
  try {
    mkdirSync(guard);
  } catch (error) {
    if (systemCode(error) !== "EEXIST") throw error;
    const since = statSync(guard, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
    if (Date.now() - since > ABANDONED_MS) removeGuard(guard);
    throw new BeingMadeError("Another process makes the file.");
  }
  try {
    const isGone = statSync(path, { throwIfNoEntry: false }) === undefined;
    if (isGone) demandLockFile(path);
    for (const beside of pathsBeside(path)) {
      const found = statSync(beside, { throwIfNoEntry: false });
      const isOwnFile = found && ours.some((file) => isSameFile(file, found));
      if (isOwnFile) rmSync(beside, { force: true });
      else if (found && isGone) renameSync(beside, `${beside}.left-${machineRuntime.random.id()}`);
    }
    prepareFile(path);
  } finally {
    removeGuard(guard);
  }
}

/** The guard is an empty folder; a folder that is not empty is not ours, and stays. */
function removeGuard(guard: string): void {
  try {
    rmdirSync(guard);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return;
    throw error;
  }
}
