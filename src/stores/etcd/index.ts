/**
 * Locks in etcd.
 *
 * Why it is safe: a lock is a queue of keys, ordered by their create revisions, which etcd decides.
 * A key holds when all keys up to it may hold together. Each key is bound to a lease of etcd. Its
 * process believes in the key until a deadline: the sending of the last keep-alive that was
 * *proven* to have reached the leader of the cluster, plus the ttl, less a margin. No later leader
 * ends the lease earlier, so the key is there while its process believes in it, and no key behind
 * it holds. The proof does not cover a member that lost the lead and still expires leases (a fault
 * of etcd 3.4.23), nor an operator who deletes keys. For these the process watches its key and
 * is told at once, and `guard` lets etcd itself refuse the writes of a stale holder. Tokens are
 * create revisions: they rise for as long as the cluster keeps its data.
 */
export type { EtcdClient } from "./etcd-client.js";
export { type EtcdStoreOptions, etcdStore } from "./etcd-store.js";
export { openEtcdStore } from "./etcd-url.js";
export { type EtcdGuard, guard } from "./guard.js";
