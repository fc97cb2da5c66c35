import { readFileSync } from "node:fs";
import { isatty } from "node:tty";
import { UsageError } from "./arguments.js";

/**
 * The handle of a lease that another process took. Never an argument: arguments can be read by
 * every user of the machine and end up in the history of the shell.
 */
export function readHandle(): string {
  const handle = (process.env.HOLDFAST_HANDLE ?? fromStdin()).trim();
  if (handle !== "") return handle;
  throw new UsageError(
    "The handle is missing: set HOLDFAST_HANDLE to what `holdfast acquire` printed, or pipe it in.",
  );
}

function fromStdin(): string {
  if (isatty(0)) return "";
  try {
    return readFileSync(0, "utf8");
  } catch {
    return "";
  }
}

export const IS_OVER: string =
  "The lease has ended: it was released or revoked, or its time ran out (or this is another " +
  "store than it was acquired from). Another process may hold the lock; stop the work under it.";
