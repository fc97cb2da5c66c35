/**
 * The proof that etcd keeps a session.
 *
 * A keep-alive is answered from the memory of a member that takes itself for the leader. The answer
 * counts only when a linearizable read, begun after it, finds the key of the session, and both
 * answers name the same term. Then the leader of that term was still the leader after it had taken
 * the keep-alive, and every later leader gives each lease its full ttl again.
 */
import { StoreError } from "../../errors.js";
import { foreignData, whole } from "../../foreign-data.js";
import type { OwnEntry, Proof } from "../sequencer/sequencer.js";
import type { EtcdCalls } from "./etcd-calls.js";
import type { KeepAliveReply } from "./etcd-client.js";
import { etcdEntry } from "./etcd-entry.js";

/** etcd takes 128 operations in one transaction, unless it is configured otherwise. */
const MOST_READS = 100;

/** `key` is the key of the session, which ends with its lease. */
export async function proveSession(
  calls: EtcdCalls,
  { lease, key }: { readonly lease: string; readonly key: Buffer },
  entries: readonly OwnEntry[],
  limitMs: number,
): Promise<Proof> {
  const kept = await calls.keepAlive(lease, limitMs);
  const ttlMs = secondsOf(kept) * 1000;
  const missing = new Set<OwnEntry>();
  const made = entries.filter(({ token }) => token > 0n);
  for (let index = 0; index === 0 || index < made.length; index += MOST_READS) {
    const part = made.slice(index, index + MOST_READS);
    const keys = [key, ...part.map((entry) => etcdEntry(entry).key)];
    const success = keys.map((one) => ({ request_range: { key: one, keys_only: true } }));
    const { header, responses } = await calls.txn({ success }, limitMs);
    const [isSessionThere, ...areThere] = responses.map(
      (one) => (one.response_range?.kvs.length ?? 0) > 0,
    );
    if (!isSessionThere) return { type: "gone" };
    // rule: keep-alive-needs-its-term
    if (header.raft_term !== kept.header.raft_term || ttlMs <= 0) {
      throw new StoreError("etcd: the leader changed during a keep-alive.", { outcome: "unknown" });
    }
    part.forEach((entry, at) => {
      if (!areThere[at]) missing.add(entry);
    });
  }
  return { type: "proven", ttlMs, missing };
}

/** A time that is no number would be a deadline that never comes. */
function secondsOf({ TTL }: KeepAliveReply): number {
  try {
    return whole(TTL);
  } catch (error) {
    throw foreignData("the reply to a keep-alive", error);
  }
}
