import { InvalidOptionError, UnsupportedError } from "../../errors.js";
import type { Store } from "../../store.js";
import { type Address, StoreUrl, type TlsFiles } from "../store-url.js";
import type { EtcdClient } from "./etcd-client.js";
import { makeEtcdStore } from "./etcd-store.js";

/** Pings find a dead connection long before the system gives up on it. */
const PING_EVERY_MS = 10_000;
const PING_ANSWER_MS = 5_000;
const LONGEST_RECONNECT_MS = 1_000;
const DEFAULT_PORT = 2379;

/** A policy that passes all calls through: the store itself decides when to repeat a call. */
const plain = { execute: async <T>(call: () => T): Promise<Awaited<T>> => await call() };

/**
 * Opens `etcd://[user:password@]host[:port][,host…][?namespace=…]`, or `etcds:` for TLS with `ca`,
 * `cert` and `key` as paths of PEM files. Closing the store closes its client.
 */
export async function openEtcdStore(url: URL): Promise<Store> {
  const parsed = parse(url);
  const client = await open(parsed);
  const hosts = parsed.hosts.map(addressText).join(", ");
  return makeEtcdStore(client, parsed.text("namespace") ?? "", () => client.close(), hosts);
}

/** The client of a URL, set so that the store sees failures soon. */
export async function openEtcdClient(url: URL): Promise<OwnClient> {
  return await open(parse(url));
}

type OwnClient = EtcdClient & { close(): void };

function parse(url: URL): StoreUrl {
  const isSecure = url.protocol === "etcds:";
  const parsed = new StoreUrl(url, { port: DEFAULT_PORT, parameters: ["namespace"], isSecure });
  if (parsed.path.length === 0) return parsed;
  throw new InvalidOptionError("url", url.protocol, "must have no path; use ?namespace=…");
}

async function open(url: StoreUrl): Promise<OwnClient> {
  const { username, password = "" } = url;
  const tls = await url.tls();
  const { Etcd3 } = await loadClient();
  return new Etcd3({
    hosts: url.hosts.map((address) => `${tls ? "https" : "http"}://${addressText(address)}`),
    ...(tls ? { credentials: credentialsOf(tls) } : {}),
    ...(username ? { auth: { username, password } } : {}),
    faultHandling: { host: () => plain, global: plain },
    grpcOptions: {
      "grpc.keepalive_time_ms": PING_EVERY_MS,
      "grpc.keepalive_timeout_ms": PING_ANSWER_MS,
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": LONGEST_RECONNECT_MS,
    },
  });
}

function addressText({ host, port }: Address): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function credentialsOf(files: TlsFiles): object {
  return { rootCertificate: files.ca, certChain: files.cert, privateKey: files.key };
}

interface EtcdModule {
  readonly Etcd3: new (options: object) => OwnClient;
}

async function loadClient(): Promise<EtcdModule> {
  const loaded = await import("etcd3").catch(() => null);
  if (loaded) return loaded as unknown as EtcdModule;
  throw new UnsupportedError("A URL of etcd needs the package etcd3: npm install etcd3.");
}
