import { existsSync, type Stats, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { StoreError } from "../../errors/index.js";
import type { Probes } from "../doctor.js";
import { demandLockFile } from "./file-header.js";
import { isHeldFile } from "./held-files.js";
import type { LockFile } from "./lock-file.js";
import { openSqlite } from "./sqlite.js";

/** The state of a lock file and of its place. */
export interface FileFacts {
  readonly path: string;
  /** Null where the file is missing. */
  readonly file: Access | null;
  readonly folder: Access;
  readonly volume: Volume;
  /** Why the file is refused; null where it is a lock file, or missing. */
  readonly refusal: string | null;
  readonly isReplaced: boolean;
  /** The result of SQLite's own check; null where there is nothing to check. */
  readonly integrity: Integrity | null;
  /** The version of SQLite. */
  readonly sqlite: string;
}

interface Access {
  readonly path: string;
  readonly isOurs: boolean;
  /** Users beside its owner may write. */
  readonly isShared: boolean;
}

interface Volume {
  /** The number of the type of the file system. */
  readonly type: number;
  readonly freeBytes: number;
}

/** A file that is whole, damaged, or kept locked by a process. */
interface Integrity {
  readonly type: "whole" | "damaged" | "locked";
  readonly detail: string;
}

/** A larger file is not read as a whole: that would block the event loop. */
const MAX_CHECKED_BYTES = 64 * 1024 * 1024;
const WRITABLE_BY_OTHERS = 0o022;

export function fileProbes(lockFile: LockFile): Probes<FileFacts> {
  const { path } = lockFile;
  const found = (): Stats | undefined => statSync(path, { throwIfNoEntry: false });
  const folder = nearestFolder(dirname(path));
  const refusal = (): string | null => {
    const stats = found();
    // To open and close a file that is in use would drop its locks.
    if (!stats || isHeldFile(stats)) return null;
    try {
      demandLockFile(path);
      return null;
    } catch (error) {
      return (error as Error).message;
    }
  };
  return {
    path: () => path,
    file: () => {
      const stats = found();
      return stats ? accessOf(path, stats) : null;
    },
    folder: () => accessOf(folder, statSync(folder)),
    volume: () => {
      const { type, bavail, bsize } = statfsSync(folder);
      return { type: type >>> 0, freeBytes: bavail * bsize };
    },
    refusal,
    isReplaced: () => lockFile.isReplaced,
    integrity: async () => {
      const stats = found();
      if (!stats || stats.size === 0) return null;
      if (refusal() !== null) throw new Error("It is no lock file.");
      if (stats.size > MAX_CHECKED_BYTES) throw new Error("The file is too large to be checked.");
      return await integrityOf(lockFile);
    },
    sqlite: () => {
      const database = openSqlite(":memory:");
      try {
        return String(database.get("select sqlite_version()", [])?.[0]);
      } finally {
        database.close();
      }
    },
  };
}

async function integrityOf(lockFile: LockFile): Promise<Integrity> {
  try {
    const detail = await lockFile.transact((database) => {
      const [row] = database.all("pragma quick_check(1)", []);
      return String(row?.[0]);
    }, true);
    return { type: detail === "ok" ? "whole" : "damaged", detail };
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    return { type: error.retryable ? "locked" : "damaged", detail: error.message };
  }
}

function nearestFolder(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : nearestFolder(dirname(folder));
}

function accessOf(path: string, { uid, mode }: Stats): Access {
  const own = process.geteuid?.();
  return {
    path,
    isOurs: own === undefined || uid === own,
    isShared: (mode & WRITABLE_BY_OTHERS) !== 0,
  };
}
