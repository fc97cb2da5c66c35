import { InvalidOptionError } from "../../errors.js";
import type { Store } from "../../store.js";
import { networkPort } from "../../time/port.js";
import { type Address, StoreUrl } from "../store-url.js";
import { makeEtcdStore } from "./etcd-store.js";
import { Http2Client } from "./http2-client.js";

const DEFAULT_PORT = 2379;

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

/** The client of a URL. */
export async function openEtcdClient(url: URL): Promise<Http2Client> {
  return await open(parse(url));
}

function parse(url: URL): StoreUrl {
  const isSecure = url.protocol === "etcds:";
  const parsed = new StoreUrl(url, { port: DEFAULT_PORT, parameters: ["namespace"], isSecure });
  if (parsed.path.length === 0) return parsed;
  throw new InvalidOptionError("url", url.protocol, "must have no path; use ?namespace=…");
}

async function open(url: StoreUrl): Promise<Http2Client> {
  const { username, password = "" } = url;
  const options = {
    members: url.hosts.map(addressText),
    tls: await url.tls(),
    user: username ? { name: username, password } : null,
  };
  return new Http2Client(options, networkPort());
}

function addressText({ host, port }: Address): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}
