import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { connect } from "../api/connect.js";
import type { Holdfast } from "../api/holdfast.js";
import { openerOf } from "../stores/open-store.js";
import { type Arguments, UsageError } from "./arguments.js";
import type { Report } from "./report.js";
import { withoutSecrets } from "./secrets.js";

/** A file below the user's home, the same for cron, a shell and a service. */
const DEFAULT_STORE = "file:";

/** `--store`, else `HOLDFAST_STORE`, else a file. An empty one is refused, whoever gave it. */
export function storeUrlOf(args: Arguments): string {
  const url = givenUrl(args);
  if (openerOf(url).parsed.protocol !== "memory:") return url;
  throw new UsageError(
    "A store in memory excludes no other process, and this command is a process of its own. " +
      "Leave --store out for a file of this user, or name a store that all processes share.",
  );
}

/** The URL, also that of a store in memory, which can be examined but excludes nobody. */
function givenUrl(args: Arguments): string {
  const { HOLDFAST_STORE } = process.env;
  const url = args.text("store") ?? HOLDFAST_STORE ?? DEFAULT_STORE;
  if (url !== "" || args.has("store")) return absolute(url);
  throw new UsageError(
    "HOLDFAST_STORE is set but empty. Set it to the URL of the store, or unset it to lock in a " +
      "file of this user.",
  );
}

/** Opens the store; a signal ends the wait for one that does not answer. */
export async function openCliStore(
  args: Arguments,
  interrupted: AbortSignal,
  report?: Report,
): Promise<Holdfast> {
  const url = storeUrlOf(args);
  if (args.has("verbose")) report?.detail(`store: ${await storeNameOf(args)}`);
  return await connected(url, interrupted);
}

/** Opens the store for an examination: also one in memory, which takes no locks here. */
export function openExamined(args: Arguments, interrupted: AbortSignal): Promise<Holdfast> {
  return connected(givenUrl(args), interrupted);
}

/** The URL of the store for people: without passwords, and with the path of the default file. */
export async function storeNameOf(args: Arguments): Promise<string> {
  const url = storeUrlOf(args);
  const { parsed } = openerOf(url);
  if (parsed.protocol !== "file:" || parsed.pathname !== "/") return withoutSecrets(url);
  const { defaultPath } = await import("../stores/file/lock-folder.js");
  return pathToFileURL(defaultPath()).href + parsed.search;
}

async function connected(url: string, interrupted: AbortSignal): Promise<Holdfast> {
  const opening = connect(url);
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
