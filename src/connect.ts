import { InvalidOptionError } from "./errors.js";
import { Holdfast } from "./holdfast.js";
import type { AcquireOptions } from "./options.js";
import type { Store } from "./store.js";
import { parseStoreUrl } from "./stores/store-url.js";

type Opener = (url: URL) => Promise<Store>;

/**
 * One line per store: what its URLs begin with, and how it is loaded, not before it is asked for.
 */
const openers: Readonly<Record<string, Opener>> = {
  "etcd:": async (url) => (await import("./stores/etcd/index.js")).openEtcdStore(url),
  "etcds:": async (url) => (await import("./stores/etcd/index.js")).openEtcdStore(url),
  "file:": async (url) => (await import("./stores/file/index.js")).openFileStore(url),
  "memory:": async (url) => (await import("./stores/memory/index.js")).openMemoryStore(url),
  "redlock:": async (url) => (await import("./stores/redlock/index.js")).openRedlockStore(url),
  "redlocks:": async (url) => (await import("./stores/redlock/index.js")).openRedlockStore(url),
  "redis:": async (url) => (await import("./stores/redis/index.js")).openRedisStore(url),
  "rediss:": async (url) => (await import("./stores/redis/index.js")).openRedisStore(url),
  "redis+sentinel:": async (url) => (await import("./stores/redis/index.js")).openRedisStore(url),
  "redis+cluster:": async (url) => (await import("./stores/redis/index.js")).openRedisStore(url),
};

/** Opens the store that a URL names, with defaults for all locks; `close` closes it again. */
export async function connect(url: string, defaults?: AcquireOptions): Promise<Holdfast> {
  const store = await openStore(url);
  try {
    return new Holdfast(store, defaults);
  } catch (error) {
    await store.close();
    throw error;
  }
}

function openStore(url: string): Promise<Store> {
  const known = Object.keys(openers).join(", ");
  let parsed: URL;
  try {
    parsed = parseStoreUrl(url);
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
