import type { Claim } from "../../contract/store.js";
import { assert } from "../../errors/assert.js";
import type { Entry, LockId, OwnEntry } from "../../families/session/sequencer.js";
import type { EtcdSession } from "./etcd-session.js";
import { isAt, type Layout, put } from "./layout.js";
import type { Compare, KeyRange, RangeRequest, RequestOp } from "./wire/messages.js";

/** An entry of this process, with its key and its queue. */
export class EtcdEntry implements OwnEntry {
  readonly lock: LockId;
  readonly claim: Claim;
  readonly id: string;
  readonly text: string;
  readonly key: Buffer;
  /** All keys of its queue, without their values. */
  readonly queue: KeyRange & RangeRequest;
  /** The session that made it, or that resumed it if another process made it. */
  readonly maker: EtcdSession;
  /** Its name within the queue; null after it was given back, and for a resumed entry. */
  number: EntryNumber | null;
  token = 0n;
  isWithdrawn = false;
  /** A copy of the request that makes the entry may still arrive. */
  creationMayStillArrive = false;
  /** etcd refused to make the entry, and no copy of the request can arrive. */
  isRefused = false;
  /** A copy of another request about the entry may still arrive. */
  changeMayStillArrive = false;
  /** The id of the last session that a request moved it to. */
  boundTo = "";
  /**
   * The leases that this process bound it to. Earlier ones stay, because an answer from before a
   * move may come after it.
   */
  readonly leases: Set<bigint> = new Set();
  /** The number of requests to move it of which a copy may still arrive. */
  bindings = 0;

  constructor(
    layout: Layout,
    claim: Claim,
    made: {
      readonly id: string;
      readonly text: string;
      readonly number: EntryNumber | null;
      readonly maker: EtcdSession;
    },
  ) {
    const { space, name } = claim;
    this.lock = { space, name };
    this.claim = claim;
    this.id = made.id;
    this.text = made.text;
    this.number = made.number;
    this.maker = made.maker;
    this.leases.add(made.maker.lease);
    this.queue = layout.queue(this.lock, "plain");
    this.key = Buffer.concat([this.queue.key, Buffer.from(made.id)]);
  }

  /** As a listing shows it. */
  listed(session: string): Entry {
    const { mode, weight, limit } = this.claim;
    return { id: this.id, mode, weight, limit, token: this.token, session, text: null };
  }
}

export function etcdEntry(entry: OwnEntry): EtcdEntry {
  assert(entry instanceof EtcdEntry, "an entry comes back to the store that made it");
  return entry;
}

/** The name of an entry within its queue. */
export interface EntryNumber {
  readonly queue: string;
  readonly era: number;
  readonly number: number;
}

interface QueueNumbers {
  next: number;
  inUse: number;
  readonly free: number[];
}

/**
 * The names of the entries of one session within a queue: numbers that are reused.
 *
 * etcd keeps a deleted key until the history is compacted, and skips all such keys whenever the
 * queue is read: with a new name for each entry, a busy lock would slow down with every turn. A
 * number is reused only after its entry has left and no request about it can still arrive, because
 * a late copy of a delete would remove the next entry with that name. If that is not certain, a new
 * era begins, with names that were never used.
 */
export class EntryNumbers {
  #queues = new Map<string, QueueNumbers>();
  #era = 0;

  take(queue: string): EntryNumber {
    let numbers = this.#queues.get(queue);
    if (!numbers) {
      numbers = { next: 0, inUse: 0, free: [] };
      this.#queues.set(queue, numbers);
    }
    numbers.inUse += 1;
    const number = numbers.free.pop() ?? numbers.next++;
    return { queue, era: this.#era, number };
  }

  /** `isCertain`: the entry has left, and no request about it can still arrive. */
  giveBack({ queue, era, number }: EntryNumber, isCertain: boolean): void {
    if (era !== this.#era) return;
    if (!isCertain) {
      this.#era += 1;
      this.#queues = new Map();
      return;
    }
    const numbers = this.#queues.get(queue);
    if (!numbers) return;
    numbers.inUse -= 1;
    if (numbers.inUse === 0) this.#queues.delete(queue);
    else numbers.free.push(number);
  }
}

/** The last part of the key of the entry. */
export function nameOf({ era, number }: EntryNumber): string {
  return `${era}-${number}`;
}

/**
 * The guard of a session: a key that keeps late copies of requests from making entries.
 *
 * The guard is bound to the lease of its session. Every request that makes an entry compares the
 * revision of the guard with the last one known here. If a copy of that request may still arrive,
 * the removal of the entry also writes the guard, in the same transaction. The revision of the
 * guard is then greater than all that were ever compared with, and never comes back, so etcd
 * refuses the copy whenever it arrives. Other requests of the session that compared with the old
 * revision are refused as well, and are sent again with the new one. The guard ends with its lease.
 * If a late copy of its request makes the lease again, that lease has no guard.
 */
export class SessionGuard {
  readonly key: Buffer;
  readonly #lease: bigint;
  #revision: bigint;
  #isLost = false;

  constructor(key: Buffer, lease: bigint, revision: bigint) {
    this.key = key;
    this.#lease = lease;
    this.#revision = revision;
  }

  /** The last known revision. */
  get revision(): bigint {
    return this.#revision;
  }

  /** The guard could not be written: only the end of the session keeps out late copies. */
  get isLost(): boolean {
    return this.#isLost;
  }

  lose(): void {
    this.#isLost = true;
  }

  isUnchanged(): Compare {
    return isAt(this.key, this.#revision);
  }

  writing(): RequestOp {
    return put(this.key, "", this.#lease);
  }

  /** Revisions may be learned in any order. */
  learn(revision: bigint): void {
    if (revision > this.#revision) this.#revision = revision;
  }
}
