import { readFileSync, statSync } from "node:fs";
import { StoreError } from "../../errors/index.js";
import { resultCode } from "./client.js";

const BUSY = 5;
const READ_ONLY = 8;
const CORRUPT = 11;
const FULL = 13;
const CANNOT_OPEN = 14;
const NOT_A_DATABASE = 26;

/** Bytes of the `-shm` file that SQLite locks to write, to checkpoint and to recover. */
const FIRST_BYTE = 120;
const LAST_BYTE = 122;

/** Another process makes the file right now. */
export class BeingMadeError extends Error {}

/** Whether another process was in the way: nothing was done, and the next try may succeed. */
export function isBusy(error: unknown): boolean {
  return error instanceof BeingMadeError || resultCode(error) === BUSY;
}

/** The error for a path that cannot be used: nothing was done, and a retry does not help. */
export function refusal(message: string, cause?: unknown): StoreError {
  const details = { outcome: "not_applied", retryable: false, store: "file" } as const;
  return new StoreError(message, { ...details, cause });
}

/** The error for a failure of SQLite, after the transaction was rolled back. */
export function storeError(error: unknown, path: string): StoreError {
  if (error instanceof StoreError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return refusal(explain(resultCode(error), message, path), error);
}

function explain(code: number | undefined, message: string, path: string): string {
  switch (code) {
    case FULL:
      return `The disk of ${path} is full: free some space, then try again.`;
    case CORRUPT:
    case NOT_A_DATABASE:
      return (
        `The lock file ${path} is damaged (${message}). Stop the programs that use it, move it ` +
        "away together with its -wal and -shm, and try again: a new one is made, and tokens go " +
        "on rising with the clock."
      );
    case READ_ONLY:
    case CANNOT_OPEN:
      return `The lock file ${path} cannot be written (${message}): check its owner and modes.`;
    default:
      return `The lock file ${path} failed: ${message}.`;
  }
}

/** The error for a database that another process kept locked for as long as this one tried. */
export function busyError(path: string, waitedMs: number): StoreError {
  const pid = writerPid(path);
  const who = pid === null ? "another process" : `process ${pid}`;
  return new StoreError(
    `The lock file ${path} has been locked by ${who} for ${Math.round(waitedMs)} ms. Is it ` +
      "stopped? Continue it (kill -CONT) or end it.",
    { outcome: "not_applied", store: "file" },
  );
}

/** The process that is inside a transaction on this database now; null if unknown (not Linux). */
export function writerPid(path: string): number | null {
  if (process.platform !== "linux") return null;
  try {
    const { ino } = statSync(`${path}-shm`);
    for (const line of readFileSync("/proc/locks", "utf8").split("\n")) {
      // 12: POSIX  ADVISORY  WRITE 4711 fe:00:1311 120 120
      const found = /POSIX\s+\S+\s+WRITE\s+(\d+)\s+\w+:\w+:(\d+)\s+(\d+)\s+(\d+)/.exec(line);
      if (!found || Number(found[2]) !== ino) continue;
      if (Number(found[3]) > LAST_BYTE || Number(found[4]) < FIRST_BYTE) continue;
      // The system shows a process outside this pid namespace as 0.
      return Number(found[1]) || null;
    }
  } catch {
    // Not every sandbox has /proc/locks; the pid only helps to find the process.
  }
  return null;
}

/** The code of a system error, such as `ENOENT`; undefined for any other error. */
export function systemCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
