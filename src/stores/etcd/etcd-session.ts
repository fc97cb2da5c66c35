/**
 * A session is a lease, with a guard against late copies of requests. The entries of the session
 * are keys that are bound to its lease.
 */

import type { Claim } from "../../contract/store.js";
import { StoreError } from "../../errors/index.js";
import { foreignData, whole } from "../../events/foreign-data.js";
import type {
  EnterCase,
  Entering,
  LeaveOptions,
  Leaving,
  Listing,
  OwnEntry,
  Proof,
  StoreSession,
} from "../../families/session/sequencer.js";
import { keyOf } from "../../rules/name.js";
import type { Runtime } from "../../time/runtime.js";
import { EtcdBatch, type EtcdCalls } from "./calls.js";
import { isLeaseGone, isOutOfSpace } from "./errors.js";
import { EntryNumbers, EtcdEntry, etcdEntry, nameOf, SessionGuard } from "./etcd-entry.js";
import {
  entryId,
  isAbsent,
  type Layout,
  leaseNumber,
  locatorText,
  newLeaseId,
  put,
  Revision,
  remove,
  rewrite,
  wasMadeAt,
} from "./layout.js";
import type {
  Compare,
  KeyValue,
  LeaseReply,
  RequestOp,
  TxnReply,
  TxnRequest,
} from "./wire/messages.js";

export interface SessionTools {
  readonly calls: EtcdCalls;
  readonly layout: Layout;
  readonly runtime: Runtime;
}

export class EtcdSession implements StoreSession {
  readonly id: string;
  readonly #tools: SessionTools;
  readonly lease: bigint;
  readonly #guard: SessionGuard;
  readonly #batch: EtcdBatch;
  readonly #numbers = new EntryNumbers();

  /** `guardRevision`: the last known revision of the guard. */
  constructor(id: string, guardRevision: bigint, tools: SessionTools) {
    this.id = id;
    this.#tools = tools;
    this.lease = leaseNumber(id);
    this.#guard = new SessionGuard(tools.layout.session(id), this.lease, guardRevision);
    this.#batch = new EtcdBatch(tools.calls, tools.runtime);
  }

  static async open(ttlMs: number, tools: SessionTools, limitMs: number): Promise<EtcdSession> {
    const { calls, layout, runtime } = tools;
    const id = newLeaseId(runtime);
    const lease = leaseNumber(id);
    try {
      await calls.grantLease(lease, ttlMs, limitMs);
      const sendings = { count: 0 };
      const success = [put(layout.session(id), "", lease)];
      const made = await calls.txn({ success }, limitMs, sendings);
      if (sendings.count <= 1) return new EtcdSession(id, made.header.revision, tools);
      throw new StoreError("etcd: It is unknown which copy of a request was answered.", {
        outcome: "unknown",
      });
    } catch (error) {
      // No entry was made in this lease, and none will be.
      calls.revokeLease(lease, limitMs).catch(() => {});
      throw error;
    }
  }

  get takesEntries(): boolean {
    return !this.#guard.isLost;
  }

  makeEntry(claim: Claim, text: string): EtcdEntry {
    const number = this.#numbers.take(keyOf(claim.space, claim.name));
    const id = entryId(this.id, claim, nameOf(number));
    return new EtcdEntry(this.#tools.layout, claim, { id, text, number, maker: this });
  }

  locatorOf({ id }: OwnEntry): string {
    return locatorText({ leaseId: this.id, entryId: id });
  }

  /**
   * `alone` compares a range that also has the keys of longer names. If only those exist, the queue
   * itself is empty, and the entry is requested again without that condition.
   */
  async enter(given: OwnEntry, enterCase: EnterCase, limitMs: number): Promise<Entering> {
    const { layout, runtime } = this.#tools;
    const guard = this.#guard;
    const entry = etcdEntry(given);
    const { lock, key, queue } = entry;
    const endMs = runtime.clock.nowMs() + limitMs;
    const lookUp: RequestOp[] = [
      { requestRange: { key: guard.key } },
      { requestRange: { ...queue, keysOnly: false } },
    ];
    const isBehind = enterCase === "behind";
    let isOnlyIfEmpty = enterCase === "if_empty";
    // An entry that is ready to wait is refused only after a fault.
    let failure =
      isOnlyIfEmpty || lock.space === "once" || entry.creationMayStillArrive ? lookUp : [];
    // The first sending has the full limit: in a batch, equal limits need no separate timers.
    for (let restMs = limitMs; ; restMs = Math.max(1, endMs - runtime.clock.nowMs())) {
      const { revision } = guard;
      const compare: Compare[] = [guard.isUnchanged(), isAbsent(key)];
      if (isOnlyIfEmpty) compare.push({ ...isAbsent(queue.key), rangeEnd: queue.rangeEnd });
      else if (lock.space === "once") compare.push(isAbsent(layout.mark(lock)));
      const success: RequestOp[] = [put(key, entry.text, this.lease)];
      if (!isBehind) success.push({ requestRange: queue });
      const reply = await this.#send(entry, { compare, success, failure }, restMs);
      if (reply === null) return { type: "gone" };
      const [first, second] = reply.responses;
      const kvs = second?.responseRange?.kvs ?? [];
      if (reply.succeeded) {
        entry.token = reply.header.revision;
        if (isBehind) return { type: "behind", moment: new Revision(entry.token) };
        // The range finds at least the entry itself.
        const listing =
          kvs.length === 1 ? this.#uncontended(entry) : layout.listing(lock, reply.header, kvs);
        return { type: "entered", listing };
      }
      if (failure !== lookUp && !entry.isWithdrawn) {
        failure = lookUp;
        continue;
      }
      const listing = layout.listing(lock, reply.header, kvs);
      if (entry.isWithdrawn) return { type: "refused", listing, mayStillArrive: true };
      const [found] = first?.responseRange?.kvs ?? [];
      if (!found) return { type: "gone" };
      const made = listing.entries.find(({ id }) => id === entry.id);
      if (made) {
        entry.token = made.token;
        return { type: "entered", listing };
      }
      guard.learn(found.modRevision);
      if (found.modRevision !== revision) continue;
      if (!isOnlyIfEmpty || !isEmpty(listing)) return this.#refused(entry, listing);
      isOnlyIfEmpty = false;
    }
  }

  async leave(given: OwnEntry, options: LeaveOptions, limitMs: number): Promise<Leaving> {
    const entry = etcdEntry(given);
    if (entry.isRefused) return NOTHING_LEFT;
    // The request that makes the entry was not answered, and may still arrive.
    if (entry.token === 0n) entry.creationMayStillArrive = true;
    try {
      const left = await this.#leave(entry, options, limitMs, entry.creationMayStillArrive);
      entry.maker.forget(entry);
      return left;
    } catch (error) {
      entry.changeMayStillArrive = true;
      if (isLeaseGone(error) && !options.mark) return NOTHING_LEFT;
      if (!entry.creationMayStillArrive || options.mark || !isOutOfSpace(error)) throw error;
    }
    // Without space the guard cannot be written, but the entry can be removed.
    this.#guard.lose();
    const left = await this.#leave(entry, options, limitMs, false);
    entry.maker.forget(entry);
    return left;
  }

  prove(entries: readonly OwnEntry[], limitMs: number): Promise<Proof> {
    const session = { lease: this.lease, key: this.#guard.key };
    return proveSession(this.#tools.calls, session, entries, limitMs);
  }

  async write(given: OwnEntry, text: string, limitMs: number): Promise<void> {
    const { key, token } = etcdEntry(given);
    const compare = [wasMadeAt(key, token)];
    await this.#tools.calls.txn({ compare, success: [rewrite(key, text)] }, limitMs);
  }

  async adopt(given: OwnEntry, limitMs: number): Promise<boolean> {
    const entry = etcdEntry(given);
    const { key } = entry;
    // A late copy of an earlier request could bind the entry to that session again, and it may end.
    if (entry.bindings > 0 && entry.boundTo !== this.id) {
      throw new StoreError(
        "etcd: An earlier request may still move the entry to another session.",
        {
          outcome: "not_applied",
        },
      );
    }
    entry.changeMayStillArrive = true;
    entry.boundTo = this.id;
    entry.bindings += 1;
    entry.leases.add(this.lease);
    const requestPut = { key, lease: this.lease, ignoreValue: true };
    const request = { compare: [wasMadeAt(key, entry.token)], success: [{ requestPut }] };
    const sendings = { count: 0 };
    const moved = await this.#tools.calls.txn(request, limitMs, sendings);
    if (sendings.count === 1) entry.bindings -= 1;
    // A late copy of the request that made the entry still passes the guard of its first session,
    // and this session cannot write that guard.
    if (entry.creationMayStillArrive) entry.maker.#guard.lose();
    entry.maker.forget(entry);
    return moved.succeeded;
  }

  async end(limitMs: number): Promise<void> {
    await this.#tools.calls.revokeLease(this.lease, limitMs);
  }

  /** The entry has left this session: its name is reused if that is safe. */
  forget(entry: EtcdEntry): void {
    const { number, changeMayStillArrive, creationMayStillArrive } = entry;
    entry.number = null;
    // rule: entry-names-rest-while-copies-may-come
    if (number) this.#numbers.giveBack(number, !changeMayStillArrive && !creationMayStillArrive);
  }

  #uncontended(entry: EtcdEntry): Listing {
    return { moment: new Revision(entry.token), entries: [entry.listed(this.id)], mark: null };
  }

  #refused(entry: EtcdEntry, listing: Listing): Entering {
    const mayStillArrive = entry.creationMayStillArrive;
    if (!mayStillArrive) {
      entry.isRefused = true;
      this.forget(entry);
    }
    return { type: "refused", listing, mayStillArrive };
  }

  async #leave(
    entry: EtcdEntry,
    { look, next, mark }: LeaveOptions,
    limitMs: number,
    isGuarded: boolean,
  ): Promise<Leaving> {
    const { calls, layout } = this.#tools;
    const { lock, key } = entry;
    // rule: withdrawal-writes-the-guard
    const guard = isGuarded ? [this.#guard.writing()] : [];
    const success: RequestOp[] = [remove(key), ...guard];
    const compare: Compare[] = [];
    const markLease = mark ? await this.#grantMark(mark.ttlMs, limitMs) : null;
    if (mark && markLease) {
      compare.push(wasMadeAt(key, entry.token));
      success.push(put(layout.mark(lock), mark.text, markLease));
    }
    if (next) success.push({ requestRange: { key: etcdEntry(next).key, keysOnly: true } });
    // Last, so that the listing shows the mark to waiters of this process.
    else if (look) success.push({ requestRange: layout.queue(lock, "plain") });
    const request = { compare, success, failure: guard };
    const sendings = { count: 0 };
    // All entries share the guard, and two requests that write it cannot be in one transaction.
    const reply =
      isGuarded || mark
        ? await calls.txn(request, limitMs, sendings)
        : await this.#batch.txn(queueOf(entry), request, limitMs, sendings);
    if (sendings.count > 1) entry.changeMayStillArrive = true;
    if (isGuarded) this.#guard.learn(reply.header.revision);
    // If the entry is absent after several sendings, an earlier one removed it and left the mark.
    // rule: repeated-leave-was-ours
    const wasRepeated = sendings.count > 1;
    if (!reply.succeeded) {
      if (markLease && !wasRepeated) calls.revokeLease(markLease, limitMs).catch(() => {});
      return { ...NOTHING_LEFT, wasThere: wasRepeated };
    }
    // rule: release-shows-the-mark
    const kvs = reply.responses.at(-1)?.responseRange?.kvs ?? [];
    return {
      wasThere: wasRepeated || reply.responses[0]?.responseDeleteRange?.deleted !== 0n,
      listing: look && !next ? layout.listing(lock, reply.header, kvs) : null,
      nextAt: next && isListed(next, kvs) ? new Revision(reply.header.revision) : null,
    };
  }

  /** Null if the lease has ended. A copy may still arrive unless the only sending was answered. */
  async #send(entry: EtcdEntry, request: TxnRequest, limitMs: number): Promise<TxnReply | null> {
    const sendings = { count: 0 };
    try {
      const reply = await this.#batch.txn(queueOf(entry), request, limitMs, sendings);
      if (sendings.count > 1) entry.creationMayStillArrive = true;
      return reply;
    } catch (error) {
      const isKnown = error instanceof StoreError && error.outcome === "not_applied";
      if (!isKnown || sendings.count > 1) entry.creationMayStillArrive = true;
      if (isLeaseGone(error)) return null;
      throw error;
    }
  }

  /** A mark has a separate lease. */
  async #grantMark(ttlMs: number, limitMs: number): Promise<bigint> {
    const lease = leaseNumber(newLeaseId(this.#tools.runtime));
    await this.#tools.calls.grantLease(lease, ttlMs, limitMs);
    return lease;
  }
}

const NOTHING_LEFT: Leaving = { wasThere: false, listing: null, nextAt: null };

/** Whether the key belongs to the entry, and not to a later one with the same name. */
function isListed({ token }: OwnEntry, [found]: readonly KeyValue[]): boolean {
  return found !== undefined && found.createRevision === token;
}

function isEmpty({ entries, mark }: Listing): boolean {
  return entries.length === 0 && mark === null;
}

function queueOf({ lock: { space, name } }: OwnEntry): string {
  return keyOf(space, name);
}

/** etcd accepts 128 operations in a transaction by default. */
const MAX_READS = 100;

/**
 * Proves that etcd keeps a session. `key` is the key of the session, which ends with its lease.
 *
 * A keep-alive is answered from the memory of a member that considers itself the leader. The answer
 * counts only if a linearizable read that begins after it finds the key of the session, and both
 * answers name the same term. Then the leader of that term was still the leader after it had taken
 * the keep-alive, and every later leader gives each lease its full ttl again.
 */
async function proveSession(
  calls: EtcdCalls,
  { lease, key }: { readonly lease: bigint; readonly key: Buffer },
  entries: readonly OwnEntry[],
  limitMs: number,
): Promise<Proof> {
  const kept = await calls.keepAlive(lease, limitMs);
  const ttlMs = secondsOf(kept) * 1000;
  const missing = new Set<OwnEntry>();
  const made = entries.filter(({ token }) => token > 0n);
  for (let index = 0; index === 0 || index < made.length; index += MAX_READS) {
    const part = made.slice(index, index + MAX_READS);
    // etcd 3.7 leaves out the lease if only keys are requested.
    const keys = [key, ...part.map((entry) => etcdEntry(entry).key)];
    const success = keys.map((one) => ({ requestRange: { key: one } }));
    const { header, responses } = await calls.txn({ success }, limitMs);
    const [guard, ...found] = responses.map((one) => one.responseRange?.kvs[0]);
    if (!guard) return { type: "gone" };
    // rule: keep-alive-needs-its-term
    if (header.raftTerm !== kept.header.raftTerm || ttlMs <= 0) {
      throw new StoreError("etcd: the leader changed during a keep-alive.", { outcome: "unknown" });
    }
    part.forEach((entry, at) => {
      const lease = found[at]?.lease;
      // An entry that another process has bound to its own lease does not end with this session.
      if (lease === undefined || !etcdEntry(entry).leases.has(lease)) missing.add(entry);
    });
  }
  return { type: "proven", ttlMs, missing };
}

function secondsOf({ ttl }: LeaseReply): number {
  try {
    return whole(Number(ttl));
  } catch (error) {
    throw foreignData("the reply to a keep-alive", error);
  }
}
