import { StoreError } from "../../errors.js";
import { resultCode } from "./sqlite.js";
import { writerPid } from "./writer-pid.js";

const BUSY = 5;
const READ_ONLY = 8;
const CORRUPT = 11;
const FULL = 13;
const CANNOT_OPEN = 14;
const NOT_A_DATABASE = 26;

/** Another process makes the file right now. */
export class BeingMadeError extends Error {}

/** Another process is in the way: nothing was done, and the next try may succeed. */
export function isBusy(error: unknown): boolean {
  return error instanceof BeingMadeError || resultCode(error) === BUSY;
}

/** The path cannot be used for locks; nothing was done, and trying again does not help. */
export function refusal(message: string, cause?: unknown): StoreError {
  const details = { outcome: "not_applied", retryable: false, store: "file" } as const;
  return new StoreError(message, { ...details, cause });
}

/** The error for a failure of SQLite. Every transaction is rolled back before. */
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

/** Another process kept the database locked for all the time that was given. */
export function busyError(path: string, waitedMs: number): StoreError {
  const pid = writerPid(path);
  const who = pid === null ? "another process" : `process ${pid}`;
  return new StoreError(
    `The lock file ${path} has been locked by ${who} for ${Math.round(waitedMs)} ms. Is it ` +
      "stopped? Continue it (kill -CONT) or end it.",
    { outcome: "not_applied", store: "file" },
  );
}
