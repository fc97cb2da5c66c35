/**
 * A session is a lease and one key bound to it.
 *
 * The key is the guard against ghosts. Every request that makes an entry compares the key's
 * revision with the last one known here. When an entry is removed while a copy of its request may
 * be under way, the removal writes the key in the same transaction: its revision is then greater
 * than all that were ever compared with, and never comes back, so the copy is refused whenever it
 * arrives. Others of the session who compared with the old revision are refused, too, for certain,
 * and ask again with the new. The key ends with the lease; a lease made anew by a late copy of its
 * request has no such key.
 *
 * A keep-alive is answered from the memory of a member that takes itself for the leader. It counts
 * only when a linearizable read, begun after the answer, finds the key, and both answers name the
 * same term: then the leader of that term was still the leader after it had taken the keep-alive,
 * and whoever leads later gives every lease its full ttl again.
 */
import { StoreError } from "../../errors.js";
import { foreignData, whole } from "../../foreign-data.js";
import { keyOf } from "../../rules/name.js";
import type { Claim, Meta } from "../../store.js";
import type { Port } from "../../time/port.js";
import type { Entering, Leaving, OwnEntry, Proof, SessionLink } from "../sequencer/sequencer.js";
import { readText } from "../sequencer/views.js";
import { EntryNumbers, nameOf } from "./entry-numbers.js";
import { EtcdBatch } from "./etcd-batch.js";
import type { EtcdCalls } from "./etcd-calls.js";
import type { Compare, KeepAliveReply, RequestOp, TxnReply } from "./etcd-client.js";
import { EtcdEntry } from "./etcd-entry.js";
import { isLeaseGone, isOutOfSpace } from "./etcd-failure.js";
import { type EtcdKeys, entryId, leaseNumber } from "./etcd-keys.js";

/** etcd takes 128 operations in one transaction, unless told otherwise. */
const MOST_READS = 100;

export interface SessionTools {
  readonly calls: EtcdCalls;
  readonly keys: EtcdKeys;
  readonly port: Port;
}

export class EtcdSession implements SessionLink {
  readonly id: string;
  readonly #tools: SessionTools;
  readonly #lease: string;
  readonly #key: Buffer;
  readonly #batch: EtcdBatch;
  readonly #numbers = new EntryNumbers();
  /** The last revision known of the guard. */
  #guard: bigint;
  /** A guard could not be written: from now on only the end of the session is one. */
  #onSpoiled: () => void = () => {};

  constructor(id: string, guard: bigint, tools: SessionTools) {
    this.id = id;
    this.#tools = tools;
    this.#lease = leaseNumber(id);
    this.#key = tools.keys.session(id);
    this.#batch = new EtcdBatch(tools.calls, tools.port);
    this.#guard = guard;
  }

  static async open(
    id: string,
    ttlMs: number,
    tools: SessionTools,
    limitMs: number,
  ): Promise<EtcdSession> {
    const { calls, keys } = tools;
    const lease = leaseNumber(id);
    try {
      await calls.grantLease(lease, ttlMs, limitMs);
      const sendings = { count: 0 };
      const key = keys.session(id);
      const made = await calls.txn({ success: [put(key, "", lease)] }, limitMs, sendings);
      if (sendings.count <= 1) return new EtcdSession(id, BigInt(made.header.revision), tools);
      throw new StoreError("etcd: it is not known which sending was answered.", {
        outcome: "unknown",
      });
    } catch (error) {
      // Nobody has used it, and nobody will.
      calls.revokeLease(lease, limitMs).catch(() => {});
      throw error;
    }
  }

  onSpoiled(listener: () => void): void {
    this.#onSpoiled = listener;
  }

  makeEntry(claim: Claim, text: string): EtcdEntry {
    const number = this.#numbers.take(keyOf(claim.space, claim.name));
    const id = entryId(this.id, claim, nameOf(number));
    return new EtcdEntry(this.#tools.keys, claim, { id, text, number });
  }

  forget(entry: OwnEntry): void {
    const { number, id, mayEcho } = entry as EtcdEntry;
    const isOurs = number !== null && id.startsWith(`${this.id}.`);
    // rule: entry-names-rest-while-copies-may-come
    if (isOurs) this.#numbers.giveBack(number, !mayEcho && !entry.isDoubtful);
  }

  async enter(entry: OwnEntry, ifAlone: boolean, limitMs: number): Promise<Entering> {
    const { keys } = this.#tools;
    const own = entry as EtcdEntry;
    const { place, id, key, line } = own;
    const lookUp = [
      { request_range: { key: this.#key } },
      { request_range: { ...line, keys_only: false } },
    ];
    // Whoever is ready to wait is refused only where something went wrong before.
    let failure = ifAlone || place.space === "once" || entry.isDoubtful ? lookUp : [];
    for (;;) {
      const guard = this.#guard;
      const compare: Compare[] = [isAt(this.#key, guard), isAbsent(key)];
      if (ifAlone) compare.push({ ...isAbsent(line.key), range_end: line.range_end });
      else if (place.space === "once") compare.push(isAbsent(keys.mark(place)));
      const reply = await this.#send(entry, limitMs, {
        compare,
        success: [put(key, entry.text, this.#lease), { request_range: line }],
        failure,
      });
      if (reply === null) return { type: "gone" };
      const [first, second] = reply.responses;
      const found = second?.response_range?.kvs ?? [];
      if (reply.succeeded) {
        entry.order = BigInt(reply.header.revision);
        // What it finds is at least itself.
        const listing =
          found.length === 1
            ? { at: entry.order, entries: [own.listed(this.id)], mark: null }
            : keys.listing(place, reply.header, found);
        return { type: "entered", listing };
      }
      if (failure !== lookUp && !entry.isWithdrawn) {
        failure = lookUp;
        continue;
      }
      const listing = keys.listing(place, reply.header, found);
      if (entry.isWithdrawn) return { type: "refused", listing };
      const [session] = first?.response_range?.kvs ?? [];
      if (!session) return { type: "gone" };
      const made = listing.entries.find((other) => other.id === id);
      if (made) {
        entry.order = made.order;
        return { type: "entered", listing };
      }
      this.#learn(session.mod_revision);
      const isRefused = BigInt(session.mod_revision) === guard;
      if (isRefused) return { type: "refused", listing };
    }
  }

  async leave(
    entry: OwnEntry,
    {
      look,
      mark,
    }: {
      readonly look?: "plain" | "texts" | undefined;
      readonly mark?: { readonly ttlMs: number; readonly meta: Meta } | undefined;
    },
    limitMs: number,
  ): Promise<Leaving> {
    const { calls, keys } = this.#tools;
    const { place, key } = entry as EtcdEntry;
    // rule: withdrawal-writes-the-guard
    const guard = entry.isDoubtful ? [put(this.#key, "", this.#lease)] : [];
    const success: RequestOp[] = [{ request_delete_range: { key } }, ...guard];
    const compare: Compare[] = [];
    const markLease = mark ? await this.#grantMark(mark.ttlMs, limitMs) : null;
    if (mark && markLease) {
      compare.push(wasMadeAt(key, entry.order));
      const text = JSON.stringify({ meta: mark.meta, token: String(entry.order) });
      success.push(put(keys.mark(place), text, markLease));
    }
    // Last: waiters of this process see the mark in it.
    if (look) success.push({ request_range: keys.line(place, look) });
    let reply: TxnReply;
    const sendings = { count: 0 };
    try {
      const request = { compare, success, failure: guard };
      // The guard is one key for all: two who write it cannot travel together.
      reply =
        entry.isDoubtful || mark
          ? await calls.txn(request, limitMs, sendings)
          : await this.#batch.txn(lineOf(entry), request, limitMs, sendings);
      if (sendings.count > 1) (entry as EtcdEntry).mayEcho = true;
    } catch (error) {
      (entry as EtcdEntry).mayEcho = true;
      if (isLeaseGone(error) && !mark) return { wasThere: false, listing: null };
      if (!entry.isDoubtful || !isOutOfSpace(error)) throw error;
      this.#onSpoiled();
      entry.isDoubtful = false;
      return this.leave(entry, { look }, limitMs);
    }
    if (entry.isDoubtful) this.#learn(reply.header.revision);
    // Absent after several sendings: an earlier one removed it and left the mark.
    // rule: repeated-leave-was-ours
    const wasRepeated = sendings.count > 1;
    if (!reply.succeeded) {
      if (markLease && !wasRepeated) calls.revokeLease(markLease, limitMs).catch(() => {});
      return { wasThere: wasRepeated, listing: null };
    }
    const left = reply.responses[0];
    const line = reply.responses.at(-1);
    // rule: release-shows-the-mark
    return {
      wasThere: wasRepeated || left?.response_delete_range?.deleted !== "0",
      listing: look ? keys.listing(place, reply.header, line?.response_range?.kvs ?? []) : null,
    };
  }

  async prove(entries: readonly OwnEntry[], limitMs: number): Promise<Proof> {
    const { calls } = this.#tools;
    const kept = await calls.keepAlive(this.#lease, limitMs);
    const ttlMs = secondsOf(kept) * 1000;
    const missing = new Set<OwnEntry>();
    let at = 0n;
    const made = entries.filter(({ order }) => order > 0n);
    for (let index = 0; index === 0 || index < made.length; index += MOST_READS) {
      const part = made.slice(index, index + MOST_READS);
      const all = [this.#key, ...part.map((entry) => (entry as EtcdEntry).key)];
      const success = all.map((key) => ({ request_range: { key, keys_only: true } }));
      const { header, responses } = await calls.txn({ success }, limitMs);
      const isThere = responses.map((one) => (one.response_range?.kvs.length ?? 0) > 0);
      if (!isThere[0]) return { type: "gone" };
      // rule: keep-alive-needs-its-term
      if (header.raft_term !== kept.header.raft_term || ttlMs <= 0) {
        throw new StoreError("etcd: the leader changed during a keep-alive.", {
          outcome: "unknown",
        });
      }
      part.forEach((entry, place) => {
        if (!isThere[place + 1]) missing.add(entry);
      });
      at = BigInt(header.revision);
    }
    return { type: "proven", ttlMs, missing, at };
  }

  async markHeld(entry: OwnEntry, limitMs: number): Promise<void> {
    const { key } = entry as EtcdEntry;
    const sinceMs = Math.round(this.#tools.port.clock.wallUs() / 1000);
    const text = JSON.stringify({ ...readText(entry.text, sinceMs), sinceMs });
    const request_put = { key, value: Buffer.from(text), ignore_lease: true };
    const compare = [wasMadeAt(key, entry.order)];
    await this.#tools.calls.txn({ compare, success: [{ request_put }] }, limitMs);
  }

  async adopt(entry: OwnEntry, limitMs: number): Promise<boolean> {
    const own = entry as EtcdEntry;
    const { key } = own;
    // A copy of an earlier request could bind the entry back to a session that ends.
    if (own.bindings > 0 && own.boundTo !== this.id) {
      throw new StoreError("etcd: the entry may still be on its way to another session.", {
        outcome: "not_applied",
      });
    }
    own.mayEcho = true;
    own.boundTo = this.id;
    own.bindings += 1;
    const request_put = { key, lease: this.#lease, ignore_value: true };
    const compare = [wasMadeAt(key, entry.order)];
    const sendings = { count: 0 };
    const request = { compare, success: [{ request_put }] };
    const moved = await this.#tools.calls.txn(request, limitMs, sendings);
    if (sendings.count === 1) own.bindings -= 1;
    return moved.succeeded;
  }

  async end(limitMs: number): Promise<void> {
    await this.#tools.calls.revokeLease(this.#lease, limitMs);
  }

  /**
   * Null when the lease is gone. Until the request is answered at the first sending, it is
   * doubtful.
   */
  async #send(
    entry: OwnEntry,
    limitMs: number,
    request: Parameters<EtcdCalls["txn"]>[0],
  ): Promise<TxnReply | null> {
    const sendings = { count: 0 };
    try {
      const reply = await this.#batch.txn(lineOf(entry), request, limitMs, sendings);
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

  #learn(revision: string): void {
    const guard = BigInt(revision);
    if (guard > this.#guard) this.#guard = guard;
  }
}

/** Ours, not etcd's choice: a repeated request then makes the same lease, not another. */
export function newLeaseId(port: Port): string {
  return BigInt(`0x1${port.random.id().slice(0, 14)}`).toString(16);
}

/** A time that is no number would be a deadline that never comes. */
function secondsOf({ TTL }: KeepAliveReply): number {
  try {
    return whole(TTL);
  } catch (error) {
    throw foreignData("the reply to a keep-alive", error);
  }
}

function lineOf({ place: { space, name } }: OwnEntry): string {
  return keyOf(space, name);
}

function put(key: Buffer, text: string, lease: string): RequestOp {
  return { request_put: { key, value: Buffer.from(text), lease } };
}

function isAbsent(key: Buffer): Compare {
  return wasMadeAt(key, 0n);
}

export function wasMadeAt(key: Buffer, order: bigint): Compare {
  return { result: "Equal", target: "Create", key, create_revision: String(order) };
}

export function isAt(key: Buffer, revision: bigint): Compare {
  return { result: "Equal", target: "Mod", key, mod_revision: String(revision) };
}
