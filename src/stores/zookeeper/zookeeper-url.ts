import type { Store } from "../../contract/store.js";
import { InvalidOptionError, invalidValue } from "../../errors/index.js";
import { StoreUrl } from "../store-url.js";
import { parseChroot } from "./wire/connect-string.js";
import { makeZookeeperStore } from "./zookeeper-store.js";

const DEFAULT_PORT = 2181;
const PARAMETERS = ["namespace", "shape", "acl", "direct"];

/**
 * Opens `zookeeper://[user:password@]host[:port][,host…][/path][?namespace=…]`, or
 * `zookeepers:` for TLS with `ca`, `cert` and `key` as paths of PEM files. Further parameters:
 * `shape`, `acl` and `direct`.
 */
export async function openZookeeperStore(url: URL): Promise<Store> {
  const isSecure = url.protocol === "zookeepers:";
  const parsed = new StoreUrl(url, { port: DEFAULT_PORT, parameters: PARAMETERS, isSecure });
  const { username, password, hosts, path } = parsed;
  if (username !== undefined && password === undefined) {
    throw invalidValue("url", "(hidden)", "must have a password where it has a user");
  }
  const tls = await parsed.tls();
  return makeZookeeperStore({
    addresses: hosts,
    chroot: parseChroot(path.map((part) => `/${part}`).join("")),
    namespace: parsed.text("namespace"),
    shape: parsed.text("shape"),
    acl: parsed.text("acl"),
    direct: flag(parsed.text("direct")),
    user: username === undefined ? undefined : { name: username, password: password ?? "" },
    tls,
  });
}

function flag(text: string | undefined): boolean | undefined {
  if (text === undefined || text === "true" || text === "false")
    return text === undefined ? undefined : text === "true";
  throw new InvalidOptionError("direct", text, "must be true or false");
}
