/**
 * Locks in etcd.
 *
 * Why it is safe: a lock is a line of keys, ordered by their create revisions; a key holds while no
 * key before it stands in its way, and etcd decides the order. Each key is bound to a lease of its
 * process. The process believes in its keys until its deadline: the sending of the last keep-alive
 * that was *proven* to have reached the leader of the cluster, plus the ttl, less a margin. No
 * later leader ends the lease earlier, so the key is there for as long as it is believed in, and
 * nobody behind it holds. The proof does not cover members that lost the lead and, against the
 * rules, still expire leases (etcd 3.4.23 does), nor operators who delete keys: for these the
 * process watches its key and is told at once; and `guard` lets etcd itself refuse what a stale
 * holder writes. Tokens are create revisions: they rise for as long as the cluster keeps its data.
 */
export type { EtcdClient } from "./etcd-client.js";
export { type EtcdStoreOptions, etcdStore } from "./etcd-store.js";
export { openEtcdStore } from "./etcd-url.js";
export { type EtcdGuard, guard } from "./guard.js";
