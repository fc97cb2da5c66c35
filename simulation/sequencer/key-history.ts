/** The keys of a simulated etcd, with the history of their changes since the last compaction. */
import type {
  Header,
  KeyValue,
  RangeRequest,
  WatchEvent,
} from "../../src/stores/etcd/wire/messages.js";

export interface KeyChange {
  readonly key: string;
  /** Null: the key was deleted. */
  readonly kv: KeyValue | null;
  readonly before: KeyValue | null;
}

export class KeyHistory {
  readonly #kvs = new Map<string, KeyValue>();
  /** The changes of each revision that is kept; the last ones are of the present revision. */
  readonly #log: KeyChange[][] = [];
  /** The changes of the call that is being executed. */
  #pending: KeyChange[] = [];
  #revision = 1n;
  #compacted = 1n;
  /** The term of the leader. */
  term = 2n;

  get size(): number {
    return this.#kvs.size;
  }

  get revision(): bigint {
    return this.#revision;
  }

  /** Revisions up to this one are not kept. */
  get compacted(): bigint {
    return this.#compacted;
  }

  get pending(): readonly KeyChange[] {
    return this.#pending;
  }

  header(revision: bigint = this.#revision): Header {
    return { revision, raftTerm: this.term };
  }

  get(key: string): KeyValue | null {
    return this.#kvs.get(key) ?? null;
  }

  /** Writes a key in the revision of the call that is being executed. */
  put(key: Buffer, value: Buffer, lease: bigint): void {
    const name = key.toString();
    const before = this.get(name);
    const modRevision = this.#revision + 1n;
    const createRevision = before?.createRevision ?? modRevision;
    const kv = { key, value, createRevision, modRevision, lease };
    this.#kvs.set(name, kv);
    this.#pending.push({ key: name, kv, before });
  }

  delete(key: string): KeyValue | null {
    const before = this.get(key);
    if (!before) return null;
    this.#kvs.delete(key);
    this.#pending.push({ key, kv: null, before });
    return before;
  }

  /** Gives all pending changes one revision, and returns them. */
  commit(): readonly KeyChange[] {
    const changes = this.#pending;
    if (changes.length === 0) return changes;
    this.#pending = [];
    this.#revision += 1n;
    this.#log.push(changes);
    return changes;
  }

  /** Forgets all revisions but the last `kept`. */
  compact(kept: number): void {
    while (this.#log.length > kept) {
      this.#log.shift();
      this.#compacted += 1n;
    }
  }

  read(request: RangeRequest, kvs: ReadonlyMap<string, KeyValue> = this.#kvs): KeyValue[] {
    const from = request.key.toString();
    const end = request.rangeEnd?.toString();
    const found = [...kvs.entries()].filter(([key]) => isIn(key, from, end));
    return found.map(([, kv]) => (request.keysOnly ? { ...kv, value: Buffer.alloc(0) } : kv));
  }

  /** Reads as a member does that lacks up to `mostLag` of the last revisions. */
  readPast(request: RangeRequest, mostLag: number): { header: Header; kvs: KeyValue[] } {
    const lag = Math.min(mostLag, this.#log.length);
    const past = new Map(this.#kvs);
    for (const changes of this.#log.slice(this.#log.length - lag).reverse()) {
      for (const { key, before } of [...changes].reverse()) {
        if (before) past.set(key, before);
        else past.delete(key);
      }
    }
    return { header: this.header(this.#revision - BigInt(lag)), kvs: this.read(request, past) };
  }

  /** The events from a revision on, one list for each revision. */
  eventsFrom(from: bigint): readonly (readonly WatchEvent[])[] {
    const first = this.#revision - BigInt(this.#log.length) + 1n;
    return this.#log.flatMap((changes, index) => {
      const revision = first + BigInt(index);
      return revision >= from ? [eventsOf(changes, revision)] : [];
    });
  }
}

/** The events of one revision. */
export function eventsOf(changes: readonly KeyChange[], revision: bigint): WatchEvent[] {
  return changes.map(({ key, kv, before }) => {
    if (kv) return { type: "Put", kv, prevKv: before ?? undefined };
    const gone = { value: Buffer.alloc(0), createRevision: 0n, lease: 0n };
    const deleted = { ...gone, key: Buffer.from(key), modRevision: revision };
    return { type: "Delete", kv: deleted, prevKv: before ?? undefined };
  });
}

/** Whether a key is in a range, as etcd defines it. */
export function isIn(key: string, from: string, end: string | undefined): boolean {
  return end === undefined ? key === from : key >= from && key < end;
}
