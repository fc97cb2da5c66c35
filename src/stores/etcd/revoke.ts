import { UnsupportedError } from "../../errors/index.js";
import { revokedText } from "../../families/session/entry-text.js";
import type { LockId } from "../../families/session/sequencer.js";
import type { EtcdCalls } from "./calls.js";
import {
  type FoundKey,
  isAt,
  type Layout,
  leaseIdOf,
  remove,
  rewrite,
  wasMadeAt,
} from "./layout.js";

interface Tools {
  readonly calls: EtcdCalls;
  readonly layout: Layout;
}

/**
 * Writes the reason into the entry, then deletes it: the owner watches for both. Any key in a queue
 * blocks the lock, but only a key that is provably a lock entry or a mark is deleted. Other keys
 * belong to other programs.
 */
export async function revoke(
  tools: Tools,
  lock: LockId,
  { token, reason }: { readonly token: bigint; readonly reason: string },
  limitMs: number,
): Promise<boolean> {
  const { calls, layout } = tools;
  const { kvs } = await calls.range(layout.queue(lock), limitMs);
  const found = layout.find(lock, kvs, token);
  if (!found) return false;
  const { key, value, modRevision } = found.kv;
  if (!(await isRevocable(tools, found, limitMs))) throw notRevocable(key, lock);
  const deletion = [remove(key)];
  if (found.kind === "mark") {
    const compare = [isAt(key, modRevision)];
    return (await calls.txn({ compare, success: deletion }, limitMs)).succeeded;
  }
  const compare = [wasMadeAt(key, token)];
  const writing = [rewrite(key, revokedText(value.toString(), reason))];
  // If the database is full, etcd refuses to write the reason, but not to delete the entry.
  const written = await calls.txn({ compare, success: writing }, limitMs).catch(() => null);
  const ended = await calls.txn({ compare, success: deletion }, limitMs);
  // An owner that read the reason may have deleted its entry first.
  return ended.succeeded || written?.succeeded === true;
}

/** A renewal for longer binds an entry of ours to a session other than the one in its name. */
async function isRevocable(
  { calls, layout }: Tools,
  { kv, kind }: FoundKey,
  limitMs: number,
): Promise<boolean> {
  if (kind !== "moved") return kind !== "foreign";
  const key = layout.session(leaseIdOf(kv));
  return (await calls.range({ key, keysOnly: true }, limitMs)).kvs.length > 0;
}

function notRevocable(key: Buffer, { name }: LockId): UnsupportedError {
  return new UnsupportedError(
    `The key ${JSON.stringify(key.toString())} blocks the lock, but is no lock entry: it is not ` +
      "bound to the lease in its name. It was left alone; delete it by hand if nothing needs it.",
    { lockName: name, store: "etcd" },
  );
}
