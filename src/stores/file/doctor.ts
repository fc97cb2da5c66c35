import { existsSync, type Stats, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import {
  type Check,
  checksOver,
  danger,
  type Examination,
  type ExamineRequest,
  type Facts,
  type FailureCase,
  note,
  ok,
  warning,
} from "../../contract/examination.js";
import { StoreError } from "../../errors/index.js";
import {
  CLIENT_FAILURES,
  findingsOf,
  known,
  type Probes,
  readFacts,
  twoHolders,
} from "../doctor.js";
import { openSqlite } from "./client.js";
import { demandLockFile, isHeldFile } from "./file-header.js";
import type { LockFile } from "./lock-file.js";
import { NETWORK } from "./lock-folder.js";
import { machineRuntime } from "./machine-runtime.js";

/** The state of a lock file and of its place. */
interface FileFacts {
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
  readonly isOwnedByUs: boolean;
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

function fileProbes(lockFile: LockFile): Probes<FileFacts> {
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
    const detail = await lockFile.transact(({ database }) => {
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
    isOwnedByUs: own === undefined || uid === own,
    isShared: (mode & WRITABLE_BY_OTHERS) !== 0,
  };
}

const OVERLAY = 0x794c7630;
const IN_MEMORY: ReadonlyMap<number, string> = new Map([
  [0x01021994, "tmpfs"],
  [0x858458f6, "ramfs"],
]);
const MIN_FREE_BYTES = 16 * 1024 * 1024;
const ANOTHER_PATH = "Choose another path, in a folder of this user on a local disk.";

const check = checksOver<FileFacts>();

export const fileChecks: readonly Check<FileFacts>[] = [
  check("file/sqlite", ["sqlite"], ({ sqlite }) => ok(`SQLite ${sqlite} is loaded.`)),

  check("file/filesystem", ["volume", "folder"], ({ volume: { type }, folder: { path } }) => {
    const network = NETWORK.get(type);
    if (network !== undefined) {
      const why = "Locks of files do not reach other machines reliably: the store refuses it.";
      return danger(`${path} is on ${network}.`, why, ANOTHER_PATH);
    }
    const inMemory = IN_MEMORY.get(type);
    if (inMemory !== undefined) {
      const why = "A restart of the machine deletes the file, and the marks of `once` with it.";
      return warning(`${path} is on ${inMemory}, in memory.`, why, ANOTHER_PATH);
    }
    if (type !== OVERLAY) return ok(`${path} is on a local file system.`);
    return warning(
      `${path} is on an overlay, the own layer of a container.`,
      "Other containers do not see the file, and it is gone when the container is replaced.",
      "Put the file on a volume that all containers share.",
    );
  }),

  check("file/owner", ["folder", "file"], ({ folder, file }) => {
    const places = [folder, ...(file ? [file] : [])];
    const foreign = places.find(({ isOwnedByUs }) => !isOwnedByUs);
    const why = "Another user can replace the file at any time, and all locks with it.";
    if (foreign) return danger(`${foreign.path} belongs to another user.`, why, ANOTHER_PATH);
    const shared = places.find(({ isShared }) => isShared);
    if (!shared) return ok("Only this user can write the file and its folder.");
    return warning(`${shared.path} can be written by other users.`, why, "chmod go-w it.");
  }),

  check("file/space", ["volume"], ({ volume: { freeBytes } }) => {
    const seen = `${Math.round(freeBytes / 1024 / 1024)} MB are free for the lock file.`;
    if (freeBytes >= MIN_FREE_BYTES) return ok(seen);
    return warning(seen, "On a full disk no lock can be taken or renewed.", "Free some space.");
  }),

  check("file/header", ["path", "file", "refusal"], ({ path, file, refusal }) => {
    if (refusal !== null) {
      return danger(refusal, "The store leaves a file alone that is not its own.", ANOTHER_PATH);
    }
    if (file) return ok(`${path} is a lock file.`);
    return note(`${path} does not exist yet.`, "The first lock makes it.");
  }),

  check("file/replaced", ["path", "isReplaced"], ({ path, isReplaced }) => {
    if (!isReplaced) return ok("The file in use is the one at the path.");
    return warning(
      `${path} is not the file that this process has open.`,
      "Locks in the old file are lost at their next renewal; until then two may hold.",
      "Do not delete or replace a lock file while it is in use.",
    );
  }),

  check("file/integrity", ["integrity"], ({ integrity }) => {
    if (integrity?.type === "whole") return ok("The lock file is whole.");
    if (integrity?.type !== "damaged") return null;
    const why = "A damaged file fails calls, or forgets locks.";
    const remedy = "Stop the programs that use it, and move it away with its -wal and -shm.";
    return danger(`The lock file is damaged: ${integrity.detail}`, why, remedy);
  }),

  check("file/writer", ["integrity"], ({ integrity }) => {
    if (integrity?.type === "whole") return ok("No process keeps the file locked.");
    if (integrity?.type !== "locked") return null;
    const why = "While a process is stopped inside a transaction, no lock of the file works.";
    return danger(integrity.detail, why, "Continue that process (kill -CONT), or end it.");
  }),
];

export async function examineFile(
  lockFile: LockFile,
  { ttlMs, signal }: ExamineRequest,
): Promise<Examination> {
  const facts = await readFacts(fileProbes(lockFile), { runtime: machineRuntime, signal });
  return {
    store: "file",
    findings: findingsOf(fileChecks, facts, ttlMs),
    failureCases: failureCases(facts, ttlMs),
  };
}

function failureCases({ volume }: Facts<FileFacts>, ttlMs: number): FailureCase[] {
  const two = twoHolders(ttlMs);
  const isInMemory = IN_MEMORY.has(known(volume)?.type ?? 0);
  return [
    ...CLIENT_FAILURES,
    {
      event: "The machine sleeps",
      outcome: "Locks are kept: their clock sleeps, too.",
      isSafe: true,
    },
    {
      event: "The machine restarts",
      outcome: isInMemory
        ? "Locks are over, and the marks of `once` are lost."
        : "Locks are over; the marks of `once` are kept.",
      isSafe: true,
    },
    {
      event: "The file is deleted or replaced",
      outcome: `Locks are lost: ${two}.`,
      isSafe: false,
    },
    {
      event: "Another machine wants the lock",
      outcome: "It is not excluded: the store is for one machine.",
      isSafe: false,
    },
  ];
}
