import { readFile } from "node:fs/promises";
import { InvalidOptionError, UnsupportedError } from "../../errors.js";
import type { Store } from "../../store.js";
import type { EtcdClient } from "./etcd-client.js";
import { makeEtcdStore } from "./etcd-store.js";

/** A dead connection is noticed after this, instead of when the system gives up on it. */
const PING_EVERY_MS = 10_000;
const PING_ANSWER_MS = 5_000;
const LONGEST_RECONNECT_MS = 1_000;
const DEFAULT_PORT = 2379;

const PARAMETERS = ["host", "namespace", "ca", "cert", "key"];

/** Lets everything through: the store itself decides what to repeat, and where to wait. */
const plain = { execute: async <T>(call: () => T): Promise<Awaited<T>> => await call() };

/**
 * Opens `etcd://[user:password@]host[:port][,host…][?namespace=…]`, or `etcds:` for TLS with `ca`,
 * `cert` and `key` as paths of PEM files. Closing the store closes its client.
 */
export async function openEtcdStore(url: URL): Promise<Store> {
  const client = await openEtcdClient(url);
  return makeEtcdStore(client, url.searchParams.get("namespace") ?? "", () => client.close());
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
  const hosts = [url.host, ...searchParams.getAll("host")].map((host) => {
    const address = /:\d+$/.test(host) ? host : `${host || "127.0.0.1"}:${DEFAULT_PORT}`;
    return `${isSecure ? "https" : "http"}://${address}`;
  });
  const { Etcd3 } = await loadClient();
  return new Etcd3({
    hosts,
    ...(isSecure && searchParams.has("ca") ? { credentials: await readFiles(searchParams) } : {}),
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

async function readFiles(parameters: URLSearchParams): Promise<object> {
  const read = (name: string): Promise<Buffer> | undefined => {
    const path = parameters.get(name);
    return path === null ? undefined : readFile(path);
  };
  const [rootCertificate, certChain, privateKey] = await Promise.all(
    ["ca", "cert", "key"].map(read),
  );
  return { rootCertificate, certChain, privateKey };
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
