/**
 * Locks in etcd.
 *
 * Why it is safe: a lock is a queue of keys, ordered by their create revisions, which etcd decides.
 * A key holds when all keys up to it may hold together. Each key is bound to a lease of etcd. Its
 * process believes that it holds until a deadline: the sending of the last keep-alive that was
 * *proven* to have reached the leader of the cluster, plus the ttl, less a margin. No later leader
 * ends the lease earlier, so the key exists until the deadline, and no key behind it holds. The
 * proof does not cover a member that lost the lead and still expires leases (a fault of etcd
 * 3.4.23), nor an operator who deletes keys. For these the process watches its key and is notified
 * at once, and `guard` lets etcd itself refuse the writes of a stale holder. Tokens are create
 * revisions: they rise for as long as the cluster keeps its data.
 */

import type { Store } from "../../contract/store.js";
import type { GrantHolder } from "../../contract/store-grant.js";
import { InvalidOptionError, UnsupportedError } from "../../errors/index.js";
import { SessionGrant } from "../../families/session/session-grant.js";
import { SessionStore } from "../../families/session/session-store.js";
import { knownOptions } from "../../options/known-options.js";
import { networkRuntime } from "../../time/runtime.js";
import { checkNamespace } from "../namespace.js";
import type { TlsFiles } from "../store-url.js";
import { Http2Client } from "./client.js";
import { EtcdEntry } from "./etcd-entry.js";
import { EtcdSequencer } from "./etcd-store.js";
import { memberOf } from "./url.js";

export { openEtcdStore } from "./url.js";

/** The members of the cluster, and the namespace of the locks. */
export interface EtcdStoreOptions {
  /** Host and port of each member, as `10.0.0.1:2379`. */
  readonly endpoints: readonly string[];
  /**
   * Locks of different namespaces never meet. Default: none, and then a lock is where `etcdctl
   * lock` and Go's concurrency package look for it.
   */
  readonly namespace?: string;
  /** For a cluster with authentication. */
  readonly user?: { readonly name: string; readonly password: string };
  /** Encrypts all connections. An empty object: trust the authorities that Node knows. */
  readonly tls?: TlsFiles;
}

const EXAMPLE =
  'must be an object with the endpoints in it: etcdStore({ endpoints: ["10.0.0.1:2379"] })';
const OPTIONS = ["endpoints", "namespace", "user", "tls"] as const;

/**
 * Locks in etcd 3.4 or later. Closing the store closes its connections.
 *
 * @example
 * import { Holdfast } from "holdfast";
 * import { etcdStore } from "holdfast/etcd";
 *
 * const endpoints = ["10.0.0.1:2379", "10.0.0.2:2379", "10.0.0.3:2379"];
 * const locks = new Holdfast(etcdStore({ endpoints }));
 */
export function etcdStore(options: EtcdStoreOptions): Store {
  const { endpoints, namespace, user, tls = null } = knownOptions(options, OPTIONS, EXAMPLE);
  if (!Array.isArray(endpoints) || endpoints.length === 0) {
    throw new InvalidOptionError("endpoints", endpoints, 'must be a list: ["10.0.0.1:2379"]');
  }
  checkUser(user);
  const members = endpoints.map(memberOf);
  const runtime = networkRuntime();
  const client = new Http2Client({ members, tls, user: user ?? null }, runtime);
  const names = { namespace: checkNamespace(namespace), hosts: members.join(", ") };
  return new SessionStore(new EtcdSequencer(client, names, runtime));
}

function checkUser(user: EtcdStoreOptions["user"]): void {
  if (user === undefined) return;
  const { name, password } = user;
  if (typeof name === "string" && name !== "" && typeof password === "string") return;
  throw new InvalidOptionError("user", "(hidden)", "must be { name, password }");
}

/** The key of a lease, and its create revision while the lease holds. */
export interface EtcdGuard {
  /** The key of the entry of the lease. */
  readonly key: Buffer;
  /** The create revision that the key has until the lease ends; also the token of the lease. */
  readonly createRevision: bigint;
}

/**
 * The condition that a lease still holds, for transactions of your own: compare the create revision
 * of the key, and etcd itself refuses the write of a stale holder, however late it arrives. The
 * client that you write with must not add a prefix to the key. Throws `UnsupportedError` for a
 * lease that is not of an etcd store.
 *
 * @example
 * import { guard } from "holdfast/etcd";
 *
 * const { key, createRevision } = guard(lease);
 * const { succeeded } = await etcd
 *   .if(key, "Create", "==", String(createRevision))
 *   .then(etcd.put("config").value("new"))
 *   .commit();
 * if (!succeeded) throw new Error("a newer holder was here");
 */
export function guard(lease: object): EtcdGuard {
  const grant = (lease as Partial<GrantHolder>).held?.grant;
  if (grant instanceof SessionGrant && grant.entry instanceof EtcdEntry) {
    return { key: grant.entry.key, createRevision: grant.token };
  }
  throw new UnsupportedError(
    "Only a lease of an etcd store has a guard; in nested runs, use the lease of the outermost.",
  );
}
