/**
 * The proof that ZooKeeper keeps a session: the session is resumed on a new connection, and a
 * `multi` that checks the session's own znodes is answered on that very connection.
 *
 * Neither part is enough. A server that is cut off from its leader answers pings, and a leader that
 * was deposed resumes sessions. A `multi` through a follower is committed by a quorum, but does not
 * touch the session at the leader. Together they prove it. The server tells the leader of the
 * resume before it forwards the `multi`, in one stream, so the leader of that quorum counts the
 * time-out from a moment after the resume was sent. Every later leader begins all time-outs anew.
 *
 * On a connection to the leader itself, the `multi` alone is enough: the leader touches a session
 * with every request of its own clients.
 */
import type { OwnEntry, Proof } from "../../families/session/sequencer.js";
import { type SessionConnections, SessionGoneError } from "./session-connections.js";
import type { Connection } from "./wire/connection.js";
import { multi } from "./wire/multi.js";
import { check } from "./wire/requests.js";
import { hasCode } from "./wire/zookeeper-error.js";
import { type ZookeeperEntry, zookeeperEntry } from "./zookeeper-entry.js";

/** A request has at most 1 MB, and the path of an entry less than 2 kB. */
const MAX_CHECKS = 500;
/** Exists in every ZooKeeper. */
const ROOT = "/";

export async function proveSession(
  connections: SessionConnections,
  entries: readonly OwnEntry[],
  limitMs: number,
): Promise<Proof> {
  try {
    const missing = await connections.prove((connection) => {
      // Requests that were under way have been answered by now.
      const made = entries.map(zookeeperEntry).filter(({ isMade }) => isMade);
      return findMissing(connection, made);
    }, limitMs);
    return { type: "proven", ttlMs: connections.timeoutMs, missing };
  } catch (error) {
    if (error instanceof SessionGoneError) return { type: "gone" };
    throw error;
  }
}

async function findMissing(
  connection: Connection,
  entries: readonly ZookeeperEntry[],
): Promise<ReadonlySet<OwnEntry>> {
  const missing = new Set<OwnEntry>();
  // A session without entries is kept for those to come.
  if (entries.length === 0) await connection.send(multi([check(ROOT)]));
  for (let index = 0; index < entries.length; index += MAX_CHECKS) {
    let asked = entries.slice(index, index + MAX_CHECKS);
    while (asked.length > 0) {
      const reply = await connection.send(multi(asked.map(({ path }) => check(path))));
      if (reply.type === "done") break;
      const absent = asked[reply.at];
      if (!absent || !hasCode(reply.error, "no_node")) throw reply.error;
      missing.add(absent);
      asked = asked.filter((entry) => entry !== absent);
    }
  }
  return missing;
}
