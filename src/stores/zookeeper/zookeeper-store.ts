import type { Store } from "../../contract/store.js";
import { InvalidOptionError } from "../../errors/index.js";
import { SessionStore } from "../../families/session/session-store.js";
import { knownOptions } from "../../options/known-options.js";
import { networkPort } from "../../time/port.js";
import { checkNamespace } from "../namespace.js";
import type { Address, TlsFiles } from "../store-url.js";
import { type Acl, CREATOR_ACL, OPEN_ACL } from "./wire/acl.js";
import { parseConnectString } from "./wire/connect-string.js";
import { Ensemble } from "./wire/ensemble.js";
import { SHAPES, type Shape } from "./znode-name.js";
import { ZookeeperSequencer } from "./zookeeper-sequencer.js";

/** The servers, and how locks are kept there. */
export interface ZookeeperStoreOptions {
  /** All servers of the ensemble and a path for all locks, as `a:2181,b:2181,c:2181/locks`. */
  readonly servers: string;
  /** Locks of different namespaces never meet. Default: none, and then other programs find them. */
  readonly namespace?: string;
  /**
   * The names of the znodes. `mutex`: those of Curator's `InterProcessMutex`. `readWrite`: those of
   * its `InterProcessReadWriteLock`. `kazoo`: those of kazoo's `Lock`, `ReadLock` and `WriteLock`.
   * All programs that share a lock must agree. Default: `mutex`.
   */
  readonly shape?: Shape;
  /** Proven to the servers by digest authentication. */
  readonly user?: { readonly name: string; readonly password: string };
  /**
   * `open`: every client may do everything with the znodes. `creator`: only clients of the same
   * user. Default: `creator` where there is a user, else `open`.
   */
  readonly acl?: "open" | "creator";
  /**
   * The addresses are those of the servers themselves, and no balancer chooses one. A renewal
   * through the leader then needs no new connection. Default: false.
   */
  readonly direct?: boolean;
  /** Encrypts all connections. An empty object: the authorities that Node knows count. */
  readonly tls?: TlsFiles;
}

const EXAMPLE = 'must be an object with the servers in it: zookeeperStore({ servers: "a:2181" })';
const OPTIONS = ["servers", "namespace", "shape", "user", "acl", "direct", "tls"] as const;
const ACLS: Record<string, readonly Acl[]> = { open: OPEN_ACL, creator: CREATOR_ACL };

/**
 * Locks in ZooKeeper 3.5 or later.
 *
 * @example
 * import { Holdfast } from "holdfast";
 * import { zookeeperStore } from "holdfast/zookeeper";
 *
 * const servers = "10.0.0.1:2181,10.0.0.2:2181,10.0.0.3:2181/locks";
 * const locks = new Holdfast(zookeeperStore({ servers }));
 */
export function zookeeperStore(options: ZookeeperStoreOptions): Store {
  const { servers, ...others } = knownOptions(options, OPTIONS, EXAMPLE);
  if (typeof servers !== "string" || servers === "") {
    throw new InvalidOptionError("servers", servers, "must be as host:port,host:port/path");
  }
  const { servers: addresses, chroot } = parseConnectString(servers);
  return makeZookeeperStore({ ...others, addresses, chroot });
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
  const ensemble = new Ensemble(addresses, { tls, chroot: "", credentials }, networkPort());
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
