import { InvalidOptionError } from "./errors.js";
import { Holdfast } from "./holdfast.js";
import type { AcquireOptions } from "./options.js";
import type { Store } from "./store.js";

type Opener = (url: URL) => Promise<Store>;

/**
 * One line per store: what its URLs begin with, and how it is loaded, not before it is asked for.
 */
const openers: Readonly<Record<string, Opener>> = {
  "file:": async (url) => (await import("./stores/file/index.js")).openFileStore(url),
  "memory:": async (url) => (await import("./stores/memory/index.js")).openMemoryStore(url),
};

/** Opens the store that a URL names, with defaults for all locks; `close` closes it again. */
export async function connect(url: string, defaults?: AcquireOptions): Promise<Holdfast> {
  return new Holdfast(await openStore(url), defaults);
}

function openStore(url: string): Promise<Store> {
  const known = Object.keys(openers).join(", ");
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw new InvalidOptionError(
      "url",
      "(hidden)",
      `must be a URL that begins with one of ${known}`,
    );
  }
  const open = openers[parsed.protocol];
  // Only the scheme is shown: the rest may hold a password.
  if (!open)
    throw new InvalidOptionError("url", parsed.protocol, `must begin with one of ${known}`);
  return open(parsed);
}
