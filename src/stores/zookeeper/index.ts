/**
 * Locks in ZooKeeper.
 *
 * Why it is safe: a lock is a queue of ephemeral znodes, ordered by the sequence numbers that
 * ZooKeeper gives. A znode holds when all znodes up to it may hold together. It ends with its
 * session. Its process believes in it until a deadline: the sending of the last request that
 * *resumed* the session, plus the session's time-out, less a margin. The resume counts once a
 * `multi`, which checks the znode, was answered on that very connection: the leader that committed
 * the `multi` had heard of the resume before it, and counts the time-out from there. Every later
 * leader begins the time-out anew. So the znode is there while its process believes in it, and no
 * znode behind it holds. An operator may still delete znodes: the process watches its own and is
 * told at once. Tokens are the transactions that made the znodes: they rise for as long as the
 * ensemble keeps its data.
 */

export { type ZookeeperStoreOptions, zookeeperStore } from "./zookeeper-store.js";
export { openZookeeperStore } from "./zookeeper-url.js";
