import type { Store } from "../../contract/store.js";
import { InvalidOptionError } from "../../errors/index.js";
import { SessionStore } from "../../families/session/session-store.js";
import { networkRuntime } from "../../time/runtime.js";
import { checkNamespace } from "../namespace.js";
import { type Address, StoreUrl } from "../store-url.js";
import { Http2Client } from "./client.js";
import { EtcdSequencer } from "./etcd-store.js";

const DEFAULT_PORT = 2379;
const MAX_PORT = 65_535;

/**
 * Opens `etcd://[user:password@]host[:port][,host…][?namespace=…]`, or `etcds:` for TLS with `ca`,
 * `cert` and `key` as paths of PEM files.
 */
export async function openEtcdStore(url: URL): Promise<Store> {
  const isSecure = url.protocol === "etcds:";
  const parsed = new StoreUrl(url, { port: DEFAULT_PORT, parameters: ["namespace"], isSecure });
  if (parsed.path.length > 0) {
    throw new InvalidOptionError("url", url.protocol, "must have no path; use ?namespace=…");
  }
  const { username, password = "" } = parsed;
  const members = parsed.hosts.map(addressText);
  const user = username ? { name: username, password } : null;
  const runtime = networkRuntime();
  const client = new Http2Client({ members, tls: await parsed.tls(), user }, runtime);
  const namespace = checkNamespace(parsed.text("namespace"));
  const sequencer = new EtcdSequencer(client, { namespace, hosts: members.join(", ") }, runtime);
  void sequencer.checkVersion();
  return new SessionStore(sequencer);
}

/** Host and port of an endpoint, as connections name them. */
export function memberOf(endpoint: unknown): string {
  const match = /^(\[[\da-f:.]+\]|[^:[\]/?#@\s]+)(?::(\d+))?$/i.exec(String(endpoint));
  const [, host, port = DEFAULT_PORT] = match ?? [];
  if (match && Number(port) <= MAX_PORT) return `${host}:${port}`;
  const rule = "must be as host:port, without a scheme; TLS has the option tls";
  throw new InvalidOptionError("endpoints", endpoint, rule);
}

function addressText({ host, port }: Address): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}
