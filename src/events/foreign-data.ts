/**
 * Foreign data: bytes in a store that this package did not write or cannot read.
 *
 * Bytes of a store reach this process in two ways. The reply to a call is decoded by functions that
 * throw `Unreadable`, which `foreignData` turns into the `StoreError` of that call. A message that
 * no caller waits for is handled under `guarded`, which does not throw but publishes the failure on
 * `holdfast:foreign`.
 */
import { InternalError, StoreError } from "../errors/index.js";
import type { ForeignEvent } from "./events.js";
import { events } from "./publish.js";

/** Thrown by decoding functions, whose callers add where the data is. */
export class Unreadable extends Error {
  constructor(expected: string) {
    super(`expected ${expected}`);
    this.name = "Unreadable";
  }
}

/** Parses a safe integer, zero or more, given as a number or in decimal digits. */
export function whole(value: unknown): number {
  const number = typeof value === "string" && DIGITS.test(value) ? Number(value) : value;
  if (!Number.isSafeInteger(number) || (number as number) < 0) {
    throw new Unreadable("a whole number");
  }
  return number as number;
}

const DIGITS = /^\d{1,16}$/;

export function text(value: unknown): string {
  if (typeof value !== "string") throw new Unreadable("a text");
  return value;
}

/** Checks that the value is one of the known ones. */
export function oneOf<const T>(known: readonly T[], value: unknown): T {
  if (!known.includes(value as T)) throw new Unreadable(`one of ${known.join(", ")}`);
  return value as T;
}

export function list(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new Unreadable("a list");
  return value;
}

export function record(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw new Unreadable("an object");
}

/** The error of a call that found foreign data. It is final: a retry would find the same data. */
export function foreignData(where: string, cause?: unknown): StoreError {
  const why = cause instanceof Unreadable ? ` (${cause.message})` : "";
  const error = new StoreError(
    `The store holds data that is not ours at ${where}${why}: ` +
      "remove it, or use another namespace.",
    { outcome: "unknown", retryable: false, cause },
  );
  made.add(error);
  return error;
}

/** The error of a call whose reply could not be used. An `InternalError` is returned as it is. */
export function replyError(where: string, cause: unknown): StoreError | InternalError {
  return cause instanceof InternalError ? cause : foreignData(where, cause);
}

const made = new WeakSet<StoreError>();

/** Whether `foreignData` made this error. */
export function isForeign(error: unknown): error is StoreError {
  return error instanceof StoreError && made.has(error);
}

/** Publishes foreign data in a message that no caller waits for. */
export function reportForeign(store: string, where: string, error: unknown): void {
  if (!events.foreign.hasSubscribers) return;
  events.foreign.publish({ store, where, error } satisfies ForeignEvent);
}

/** Wraps a message handler so that it neither throws nor rejects. */
export function guarded<Args extends unknown[]>(
  store: string,
  where: string,
  handle: (...args: Args) => unknown,
): (...args: Args) => void {
  const report = (error: unknown): void => reportForeign(store, where, error);
  return (...args) => {
    try {
      const done = handle(...args);
      if (done instanceof Promise) done.catch(report);
    } catch (error) {
      report(error);
    }
  };
}
