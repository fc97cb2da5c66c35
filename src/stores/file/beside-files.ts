import { mkdirSync, renameSync, rmdirSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { BeingMadeError, systemCode } from "./failure.js";
import { demandLockFile } from "./file-header.js";
import { type FileId, isSameFile } from "./held-files.js";
import { prepareFile, prepareFolder } from "./lock-folder.js";
import { machinePort } from "./machine-port.js";

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
      const isOurs = found && ours.some((file) => isSameFile(file, found));
      if (isOurs) rmSync(beside, { force: true });
      else if (found && isGone) renameSync(beside, `${beside}.left-${machinePort.random.id()}`);
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
