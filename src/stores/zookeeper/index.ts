/**
 * Locks in ZooKeeper.
 *
 * Why it is safe: a lock is a queue of ephemeral znodes, ordered by the sequence numbers that
 * ZooKeeper gives. A znode holds when all znodes up to it may hold together. It ends with its
 * session. Its process believes in it until a deadline: the sending of the last request that
 * *resumed* the session, plus the session's timeout, less a margin. The resume counts once a
 * `multi`, which checks the znode, was answered on that very connection: the leader that committed
 * the `multi` had heard of the resume before it, and counts the timeout from there. Every later
 * leader starts the timeout again. So the znode is there while its process believes in it, and no
 * znode behind it holds. An operator may still delete znodes: the process watches its own and is
 * told at once. Tokens are the transactions that made the znodes: they rise for as long as the
 * ensemble keeps its data.
 */

import type { Store } from "../../contract/store.js";
import { InvalidOptionError } from "../../errors/index.js";
import { knownOptions } from "../../options/known-options.js";
import type { TlsFiles } from "../store-url.js";
import { makeZookeeperStore, parseConnectString } from "./url.js";
import type { Shape } from "./zookeeper-entry.js";

export { openZookeeperStore } from "./url.js";

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
