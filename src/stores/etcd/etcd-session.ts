/**
 * A session is a lease, with a guard against late copies of requests. The entries of the session
 * are keys that are bound to its lease.
 */
import { StoreError } from "../../errors.js";
import { keyOf } from "../../rules/name.js";
import type { Claim } from "../../store.js";
import type { Port } from "../../time/port.js";
import type {
  EnterCase,
  Entering,
  LeaveOptions,
  Leaving,
  Listing,
  OwnEntry,
  Proof,
  SessionLink,
} from "../sequencer/sequencer.js";
import { EntryNumbers, nameOf } from "./entry-numbers.js";
import { EtcdBatch } from "./etcd-batch.js";
import type { EtcdCalls } from "./etcd-calls.js";
import type { Compare, KeyValue, RequestOp, TxnReply, TxnRequest } from "./etcd-client.js";
import { EtcdEntry, etcdEntry } from "./etcd-entry.js";
import { isLeaseGone, isOutOfSpace } from "./failure.js";
import { entryId, type Layout } from "./layout.js";
import { leaseNumber, newLeaseId } from "./lease-id.js";
import { locatorText } from "./locator.js";
import { isAbsent, put, remove, rewrite, wasMadeAt } from "./operations.js";
import { Revision } from "./revision.js";
import { SessionGuard } from "./session-guard.js";
import { proveSession } from "./session-proof.js";

export interface SessionTools {
  readonly calls: EtcdCalls;
  readonly layout: Layout;
  readonly port: Port;
}

export class EtcdSession implements SessionLink {
  readonly id: string;
  readonly #tools: SessionTools;
  readonly #lease: string;
  readonly #guard: SessionGuard;
  readonly #batch: EtcdBatch;
  readonly #numbers = new EntryNumbers();

  /** `guardRevision`: of the guard, as it was last written or read. */
  constructor(id: string, guardRevision: bigint, tools: SessionTools) {
    this.id = id;
    this.#tools = tools;
    this.#lease = leaseNumber(id);
    this.#guard = new SessionGuard(tools.layout.session(id), this.#lease, guardRevision);
    this.#batch = new EtcdBatch(tools.calls, tools.port);
  }

  static async open(ttlMs: number, tools: SessionTools, limitMs: number): Promise<EtcdSession> {
    const { calls, layout, port } = tools;
    const id = newLeaseId(port);
    const lease = leaseNumber(id);
    try {
      await calls.grantLease(lease, ttlMs, limitMs);
      const sendings = { count: 0 };
      const success = [put(layout.session(id), "", lease)];
      const made = await calls.txn({ success }, limitMs, sendings);
      if (sendings.count <= 1) return new EtcdSession(id, BigInt(made.header.revision), tools);
      throw new StoreError("etcd: it is not known which sending was answered.", {
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
   * `alone` compares a range that also has the keys of longer names. Where only those are there,
   * the queue itself is empty, and the entry is asked for without that condition.
   */
  async enter(given: OwnEntry, enterCase: EnterCase, limitMs: number): Promise<Entering> {
    const { layout, port } = this.#tools;
    const guard = this.#guard;
    const entry = etcdEntry(given);
    const { lock, key, queue } = entry;
    const endMs = port.clock.nowMs() + limitMs;
    const lookUp: RequestOp[] = [
      { request_range: { key: guard.key } },
      { request_range: { ...queue, keys_only: false } },
    ];
    const isBehind = enterCase === "behind";
    let isOnlyIfAlone = enterCase === "alone";
    // An entry that is ready to wait is refused only after something went wrong.
    let failure = isOnlyIfAlone || lock.space === "once" || entry.isDoubtful ? lookUp : [];
    // The first sending has the limit itself: in a batch, equal limits need no timers of their own.
    for (let restMs = limitMs; ; restMs = Math.max(1, endMs - port.clock.nowMs())) {
      const { revision } = guard;
      const compare: Compare[] = [guard.isUnchanged(), isAbsent(key)];
      if (isOnlyIfAlone) compare.push({ ...isAbsent(queue.key), range_end: queue.range_end });
      else if (lock.space === "once") compare.push(isAbsent(layout.mark(lock)));
      const success: RequestOp[] = [put(key, entry.text, this.#lease)];
      if (!isBehind) success.push({ request_range: queue });
      const reply = await this.#send(entry, { compare, success, failure }, restMs);
      if (reply === null) return { type: "gone" };
      const [first, second] = reply.responses;
      const kvs = second?.response_range?.kvs ?? [];
      if (reply.succeeded) {
        entry.token = BigInt(reply.header.revision);
        if (isBehind) return { type: "behind", moment: new Revision(entry.token) };
        // The range finds at least the entry itself.
        const listing =
          kvs.length === 1 ? this.#alone(entry) : layout.listing(lock, reply.header, kvs);
        return { type: "entered", listing };
      }
      if (failure !== lookUp && !entry.isWithdrawn) {
        failure = lookUp;
        continue;
      }
      const listing = layout.listing(lock, reply.header, kvs);
      if (entry.isWithdrawn) return { type: "refused", listing, mayAppear: true };
      const [found] = first?.response_range?.kvs ?? [];
      if (!found) return { type: "gone" };
      const made = listing.entries.find(({ id }) => id === entry.id);
      if (made) {
        entry.token = made.token;
        return { type: "entered", listing };
      }
      guard.learn(found.mod_revision);
      if (BigInt(found.mod_revision) !== revision) continue;
      if (!isOnlyIfAlone || !isEmpty(listing)) return this.#refused(entry, listing);
      isOnlyIfAlone = false;
    }
  }

  async leave(given: OwnEntry, options: LeaveOptions, limitMs: number): Promise<Leaving> {
    const entry = etcdEntry(given);
    if (entry.isRefused) return NOTHING_LEFT;
    // A request without an answer may still arrive.
    if (entry.token === 0n) entry.isDoubtful = true;
    try {
      const left = await this.#leave(entry, options, limitMs, entry.isDoubtful);
      entry.maker.forget(entry);
      return left;
    } catch (error) {
      entry.mayEcho = true;
      if (isLeaseGone(error) && !options.mark) return NOTHING_LEFT;
      if (!entry.isDoubtful || options.mark || !isOutOfSpace(error)) throw error;
    }
    // Without space the guard cannot be written, but the entry can be removed.
    this.#guard.lose();
    const left = await this.#leave(entry, options, limitMs, false);
    entry.maker.forget(entry);
    return left;
  }

  prove(entries: readonly OwnEntry[], limitMs: number): Promise<Proof> {
    const session = { lease: this.#lease, key: this.#guard.key };
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
    // A copy of an earlier request could bind the entry back to a session that ends.
    if (entry.bindings > 0 && entry.boundTo !== this.id) {
      throw new StoreError("etcd: the entry may still be on its way to another session.", {
        outcome: "not_applied",
      });
    }
    entry.mayEcho = true;
    entry.boundTo = this.id;
    entry.bindings += 1;
    const request_put = { key, lease: this.#lease, ignore_value: true };
    const request = { compare: [wasMadeAt(key, entry.token)], success: [{ request_put }] };
    const sendings = { count: 0 };
    const moved = await this.#tools.calls.txn(request, limitMs, sendings);
    if (sendings.count === 1) entry.bindings -= 1;
    // A late copy of the request that made the entry fits the guard of its first session still,
    // and this session cannot write that guard.
    if (entry.isDoubtful) entry.maker.#guard.lose();
    entry.maker.forget(entry);
    return moved.succeeded;
  }

  async end(limitMs: number): Promise<void> {
    await this.#tools.calls.revokeLease(this.#lease, limitMs);
  }

  /** The entry is not in this session any more: its name may be used again, if that is safe. */
  forget(entry: EtcdEntry): void {
    const { number, mayEcho, isDoubtful } = entry;
    entry.number = null;
    // rule: entry-names-rest-while-copies-may-come
    if (number) this.#numbers.giveBack(number, !mayEcho && !isDoubtful);
  }

  #alone(entry: EtcdEntry): Listing {
    return { moment: new Revision(entry.token), entries: [entry.listed(this.id)], mark: null };
  }

  #refused(entry: EtcdEntry, listing: Listing): Entering {
    const mayAppear = entry.isDoubtful;
    if (!mayAppear) {
      entry.isRefused = true;
      this.forget(entry);
    }
    return { type: "refused", listing, mayAppear };
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
    if (next) success.push({ request_range: { key: etcdEntry(next).key, keys_only: true } });
    // Last, so that the listing shows the mark to waiters of this process.
    else if (look) success.push({ request_range: layout.queue(lock, "plain") });
    const request = { compare, success, failure: guard };
    const sendings = { count: 0 };
    // All entries share the guard: two requests that write it cannot be in one transaction.
    const reply =
      isGuarded || mark
        ? await calls.txn(request, limitMs, sendings)
        : await this.#batch.txn(queueOf(entry), request, limitMs, sendings);
    if (sendings.count > 1) entry.mayEcho = true;
    if (isGuarded) this.#guard.learn(reply.header.revision);
    // Absent after several sendings: an earlier sending removed the entry and left the mark.
    // rule: repeated-leave-was-ours
    const wasRepeated = sendings.count > 1;
    if (!reply.succeeded) {
      if (markLease && !wasRepeated) calls.revokeLease(markLease, limitMs).catch(() => {});
      return { ...NOTHING_LEFT, wasThere: wasRepeated };
    }
    // rule: release-shows-the-mark
    const kvs = reply.responses.at(-1)?.response_range?.kvs ?? [];
    return {
      wasThere: wasRepeated || reply.responses[0]?.response_delete_range?.deleted !== "0",
      listing: look && !next ? layout.listing(lock, reply.header, kvs) : null,
      nextAt: next && isListed(next, kvs) ? new Revision(reply.header.revision) : null,
    };
  }

  /** Null when the lease is gone. An entry is doubtful unless its only sending was answered. */
  async #send(entry: EtcdEntry, request: TxnRequest, limitMs: number): Promise<TxnReply | null> {
    const sendings = { count: 0 };
    try {
      const reply = await this.#batch.txn(queueOf(entry), request, limitMs, sendings);
      if (sendings.count > 1) entry.isDoubtful = true;
      return reply;
    } catch (error) {
      const isKnown = error instanceof StoreError && error.outcome === "not_applied";
      if (!isKnown || sendings.count > 1) entry.isDoubtful = true;
      if (isLeaseGone(error)) return null;
      throw error;
    }
  }

  /** A mark has a lease of its own. */
  async #grantMark(ttlMs: number, limitMs: number): Promise<string> {
    const lease = leaseNumber(newLeaseId(this.#tools.port));
    await this.#tools.calls.grantLease(lease, ttlMs, limitMs);
    return lease;
  }
}

const NOTHING_LEFT: Leaving = { wasThere: false, listing: null, nextAt: null };

/** Whether the key is that of the entry, and not of another one that has its name. */
function isListed({ token }: OwnEntry, [found]: readonly KeyValue[]): boolean {
  return found !== undefined && BigInt(found.create_revision) === token;
}

function isEmpty({ entries, mark }: Listing): boolean {
  return entries.length === 0 && mark === null;
}

function queueOf({ lock: { space, name } }: OwnEntry): string {
  return keyOf(space, name);
}
