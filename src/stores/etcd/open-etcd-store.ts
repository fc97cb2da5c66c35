import { readFile } from "node:fs/promises";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import { InvalidOptionError, UnsupportedError } from "../../errors.js";
import type { Store } from "../../store.js";
import type { EtcdClient } from "./etcd-client.js";
import { makeEtcdStore } from "./etcd-store.js";

/** A dead connection is noticed after this, instead of when the system gives up on it. */
const PING_EVERY_MS = 10_000;
const PING_ANSWER_MS = 5_000;
const LONGEST_RECONNECT_MS = 1_000;
const DEFAULT_PORT = 2379;

const FILES = ["ca", "cert", "key"];
const PARAMETERS = ["host", "namespace", ...FILES];

/** Lets everything through: the store itself decides what to repeat, and where to wait. */
const plain = { execute: async <T>(call: () => T): Promise<Awaited<T>> => await call() };

/**
 * Opens `etcd://[user:password@]host[:port][,host…][?namespace=…]`, or `etcds:` for TLS with `ca`,
 * `cert` and `key` as paths of PEM files. Closing the store closes its client.
 */
export async function openEtcdStore(url: URL): Promise<Store> {
  const client = await openEtcdClient(url);
  const namespace = url.searchParams.get("namespace") ?? "";
  return makeEtcdStore(client, namespace, () => client.close(), addressesOf(url).join(", "));
}

/** The client of a URL, tuned so that failures are seen by the store, and soon. */
export async function openEtcdClient(url: URL): Promise<EtcdClient & { close(): void }> {
  const { username, password, searchParams } = url;
  for (const name of searchParams.keys()) {
    if (!PARAMETERS.includes(name)) {
      throw new InvalidOptionError("url", name, `has only the parameters ${PARAMETERS.join(", ")}`);
    }
  }
  const isSecure = url.protocol === "etcds:";
  const hosts = addressesOf(url).map((address) => `${isSecure ? "https" : "http"}://${address}`);
  const credentials = await readFiles(searchParams, isSecure);
  const { Etcd3 } = await loadClient();
  return new Etcd3({
    hosts,
    ...(credentials ? { credentials } : {}),
    ...(username ? { auth: { username: decode(username), password: decode(password) } } : {}),
    faultHandling: { host: () => plain, global: plain },
    grpcOptions: {
      "grpc.keepalive_time_ms": PING_EVERY_MS,
      "grpc.keepalive_timeout_ms": PING_ANSWER_MS,
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": LONGEST_RECONNECT_MS,
    },
  });
}

function addressesOf({ host, searchParams }: URL): string[] {
  return [host, ...searchParams.getAll("host")].map((text) =>
    /:\d+$/.test(text) ? text : `${text || "127.0.0.1"}:${DEFAULT_PORT}`,
  );
}

/** Null where none is named. */
async function readFiles(parameters: URLSearchParams, isSecure: boolean): Promise<object | null> {
  const given = FILES.filter((name) => parameters.has(name));
  if (given.length === 0) return null;
  if (!isSecure) throw new InvalidOptionError("url", given[0], "is for connections with TLS only");
  if (given.includes("cert") !== given.includes("key")) {
    throw new InvalidOptionError("url", given, "must have cert and key, or neither");
  }
  const [rootCertificate, certChain, privateKey] = await Promise.all(
    FILES.map((name) => readPem(name, parameters.get(name))),
  );
  checkPem(given, { ca: rootCertificate, cert: certChain, key: privateKey });
  return { rootCertificate, certChain, privateKey };
}

/** The client would throw an error of its own, much later. */
function checkPem(given: readonly string[], files: SecureContextOptions): void {
  try {
    createSecureContext(files);
  } catch (error) {
    const { message } = error as Error;
    throw new InvalidOptionError("url", given, `must name PEM files that fit (${message})`);
  }
}

async function readPem(name: string, path: string | null): Promise<Buffer | undefined> {
  if (path === null) return undefined;
  try {
    return await readFile(path);
  } catch (error) {
    const { code = "unknown" } = error as NodeJS.ErrnoException;
    throw new InvalidOptionError(name, path, `must be the path of a file to read (${code})`);
  }
}

interface EtcdModule {
  readonly Etcd3: new (options: object) => EtcdClient & { close(): void };
}

async function loadClient(): Promise<EtcdModule> {
  const loaded = await import("etcd3").catch(() => null);
  if (loaded) return loaded as unknown as EtcdModule;
  throw new UnsupportedError("A URL of etcd needs the package etcd3: npm install etcd3.");
}

const decode = decodeURIComponent;
