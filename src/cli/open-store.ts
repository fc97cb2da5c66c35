import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { connect } from "../connect.js";
import type { Holdfast } from "../holdfast.js";
import type { Arguments } from "./arguments.js";

/** A file below the user's home, the same for cron, a shell and a service. */
const DEFAULT_STORE = "file:";

/** `--store`, even if it is empty (`connect` refuses that), else `HOLDFAST_STORE`, else a file. */
export function storeUrlOf(args: Arguments): string {
  const given = args.text("store") ?? (process.env.HOLDFAST_STORE || DEFAULT_STORE);
  return absolute(given);
}

/** Opens the store; a signal ends the wait for one that does not answer. */
export async function openStore(args: Arguments, interrupted: AbortSignal): Promise<Holdfast> {
  const opening = connect(storeUrlOf(args));
  if (interrupted.aborted) throw interrupted.reason;
  let onAbort = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(interrupted.reason);
    interrupted.addEventListener("abort", onAbort);
  });
  try {
    return await Promise.race([opening, aborted]);
  } finally {
    interrupted.removeEventListener("abort", onAbort);
  }
}

/** A URL cannot be relative to a folder, but a path typed at a prompt is. */
function absolute(given: string): string {
  const path = /^file:(?!\/)(.+)/.exec(given)?.[1] ?? (/^\.{0,2}\//.test(given) ? given : null);
  return path === null ? given : pathToFileURL(resolve(path)).href;
}
