import type { Store } from "../contract/store.js";
import { InvalidOptionError, invalidValue } from "../errors/index.js";
import { unknownWord } from "../options/known-options.js";
import { nearestWord } from "../options/nearest-word.js";
import { parseStoreUrl } from "./store-url.js";

type Opener = (url: URL) => Promise<Store>;

const etcd: Opener = async (url) => (await import("./etcd/index.js")).openEtcdStore(url);
const file: Opener = async (url) => (await import("./file/index.js")).openFileStore(url);
const memory: Opener = async (url) => (await import("./memory/index.js")).openMemoryStore(url);
const postgres: Opener = async (url) =>
  (await import("./postgres/index.js")).openPostgresStore(url);
const redis: Opener = async (url) => (await import("./redis/index.js")).openRedisStore(url);
const redlock: Opener = async (url) => (await import("./redlock/index.js")).openRedlockStore(url);
const zookeeper: Opener = async (url) =>
  (await import("./zookeeper/index.js")).openZookeeperStore(url);

/** The schemes of URLs. The code of a store is loaded when its first URL is opened. */
const openers: Readonly<Record<string, Opener>> = {
  "etcd:": etcd,
  "etcds:": etcd,
  "file:": file,
  "memory:": memory,
  "postgres:": postgres,
  "postgresql:": postgres,
  "redlock:": redlock,
  "redlocks:": redlock,
  "redlock+sentinel:": redlock,
  "redlock+cluster:": redlock,
  "redis:": redis,
  "rediss:": redis,
  "redis+sentinel:": redis,
  "redis+cluster:": redis,
  "zookeeper:": zookeeper,
  "zookeepers:": zookeeper,
};

/** Opens the store that a URL names. Throws `InvalidOptionError` for a URL that names none. */
export function openStore(url: string): Promise<Store> {
  const { open, parsed } = openerOf(url);
  return open(parsed);
}

/** The kind of store that a URL names, and the URL in its parts. */
export function openerOf(url: string): { readonly open: Opener; readonly parsed: URL } {
  const schemes = Object.keys(openers);
  const rule = `must be a URL that begins with one of ${schemes.join(", ")}`;
  if (url === undefined || url === "") {
    const given = url === "" ? "empty" : "undefined";
    const advice = "Is the environment variable that should hold it set?";
    const message = `The URL of the store is ${given}. ${advice}`;
    throw new InvalidOptionError("url", "(hidden)", rule, message);
  }
  let parsed: URL;
  try {
    parsed = parseStoreUrl(url);
  } catch (error) {
    if (error instanceof InvalidOptionError) throw error;
    throw invalidValue("url", "(hidden)", rule);
  }
  const { protocol } = parsed;
  const open = openers[protocol];
  // Only the scheme is shown: the rest may hold a password.
  if (!open) {
    if (nearestWord(protocol, schemes)) throw unknownWord("scheme", "url", protocol, schemes);
    throw new InvalidOptionError("url", protocol, rule);
  }
  return { open, parsed };
}
