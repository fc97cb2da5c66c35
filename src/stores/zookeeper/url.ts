import type { Store } from "../../contract/store.js";
import { InvalidOptionError, invalidValue } from "../../errors/index.js";
import { SessionStore } from "../../families/session/session-store.js";
import { networkRuntime } from "../../time/runtime.js";
import { checkNamespace } from "../namespace.js";
import { type Address, StoreUrl, type TlsFiles } from "../store-url.js";
import { Ensemble } from "./client.js";
import type { ZookeeperStoreOptions } from "./index.js";
import { type Acl, CREATOR_ACL, OPEN_ACL } from "./wire/requests.js";
import { SHAPES, type Shape } from "./zookeeper-entry.js";
import { ZookeeperSequencer } from "./zookeeper-store.js";

const DEFAULT_PORT = 2181;
const ACLS: Record<string, readonly Acl[]> = { open: OPEN_ACL, creator: CREATOR_ACL };
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

/** The servers and the chroot of a connect string, such as `a:2181,b:2181/app`. */
export interface ConnectTarget {
  readonly servers: readonly Address[];
  /** "" or such as "/app". */
  readonly chroot: string;
}

const USUAL_PORT = 2181;
const MAX_PORT = 65_535;

/** Throws `InvalidOptionError`. A server without a port has the usual one, 2181. */
export function parseConnectString(text: string): ConnectTarget {
  const slash = text.indexOf("/");
  const hosts = slash < 0 ? text : text.slice(0, slash);
  const path = slash < 0 ? "" : text.slice(slash);
  const servers = hosts.split(",").map((server) => {
    const match = /^(?:\[([\da-f:.]+)\]|([^:[\]\s]+))(?::(\d+))?$/i.exec(server.trim());
    const [, address, name, port = USUAL_PORT] = match ?? [];
    if (!match || Number(port) > MAX_PORT) {
      throw new InvalidOptionError("servers", text, "must be as host:port,host:port/chroot");
    }
    return { host: address ?? name ?? "", port: Number(port) };
  });
  return { servers, chroot: parseChroot(path) };
}

/** Throws `InvalidOptionError` where it is no path of a znode. "/" is no chroot. */
export function parseChroot(path: string): string {
  if (path === "" || path === "/") return "";
  if (/^(\/(?!\.{1,2}(\/|$))[^/\0]+)+$/.test(path)) return path;
  throw new InvalidOptionError("chroot", path, "must be a path such as /app, without . and ..");
}

/** As the caller wrote them. */
interface GivenParts {
  readonly addresses: readonly Address[];
  readonly chroot: string;
  readonly namespace?: string | undefined;
  readonly shape?: string | undefined;
  readonly user?: ZookeeperStoreOptions["user"] | undefined;
  readonly acl?: string | undefined;
  readonly direct?: boolean | undefined;
  readonly tls?: TlsFiles | null | undefined;
}

export function makeZookeeperStore({ addresses, chroot, ...given }: GivenParts): Store {
  const { user, acl = user ? "creator" : "open", tls = null } = given;
  const permissions = ACLS[acl];
  if (!permissions) throw new InvalidOptionError("acl", acl, "must be open or creator");
  if (acl === "creator" && !user) {
    throw new InvalidOptionError("acl", acl, "must be open where there is no user");
  }
  if (typeof (given.direct ?? false) !== "boolean") {
    throw new InvalidOptionError("direct", given.direct, "must be true or false");
  }
  checkUser(user);
  const credentials = user ? [{ scheme: "digest", text: `${user.name}:${user.password}` }] : [];
  // The chroot itself may have to be made, so paths are whole ones here.
  const ensemble = new Ensemble(addresses, { tls, chroot: "", credentials }, networkRuntime());
  const sequencer = new ZookeeperSequencer(ensemble, {
    chroot,
    namespace: checkNamespace(given.namespace),
    shape: checkShape(given.shape ?? "mutex"),
    isDirect: given.direct ?? false,
    acl: permissions,
    servers: addresses.map(addressText).join(", "),
  });
  return new SessionStore(sequencer);
}

/** The name ends at the first colon of a credential, so it must not have one itself. */
function checkUser(user: ZookeeperStoreOptions["user"]): void {
  if (user === undefined) return;
  const { name, password } = user;
  if (typeof name === "string" && /^[^:]+$/.test(name) && typeof password === "string") return;
  throw new InvalidOptionError("user", "(hidden)", "must be { name, password }, no colon in name");
}

function checkShape(given: string): Shape {
  const shape = SHAPES.find((one) => one === given);
  if (shape) return shape;
  throw new InvalidOptionError("shape", given, `must be one of ${SHAPES.join(", ")}`);
}

function addressText({ host, port }: Address): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}
