/**
 * The account of the queues in a simulated store, for the checkers: which entry was queued,
 * granted, withdrawn or revoked, and when. The account reads the keys by itself and does not use
 * the rules that it helps to check: entries stand in the order of their tokens.
 */
import type { History } from "../history.js";

/** An entry, as its key and its value show it. */
export interface ReadEntry {
  readonly name: string;
  readonly token: bigint;
  readonly session: string;
  readonly isExclusive: boolean;
  readonly weight: number;
  readonly limit: number;
}

/** How a store writes its entries. */
export interface EntryReader<Value> {
  /** Null for a key that is no entry. */
  read(key: string, value: Value): ReadEntry | null;
  /** The text of the entry. */
  textOf(value: Value): Buffer;
}

interface QueuedEntry extends ReadEntry {
  readonly owner: string;
  state: "new" | "queued" | "granted";
  isRevoked: boolean;
}

export class QueueAccount<Value> {
  readonly #history: History;
  readonly #reader: EntryReader<Value>;
  /** The entries of all queues, by their keys. */
  readonly #entries = new Map<string, QueuedEntry>();

  constructor(history: History, reader: EntryReader<Value>) {
    this.#history = history;
    this.#reader = reader;
  }

  /** One key was written; null: deleted. */
  changed(nowMs: number, key: string, value: Value | null): void {
    const before = this.#entries.get(key);
    if (value && before) {
      if (this.#reader.textOf(value).includes('"revoked"')) this.revoked(nowMs, key);
    } else if (value) {
      const read = this.#reader.read(key, value);
      const state = { owner: `${key}@${read?.token}`, state: "new", isRevoked: false } as const;
      if (read) this.#entries.set(key, { ...read, ...state });
    } else if (before) {
      this.#entries.delete(key);
      const { name, owner } = before;
      this.#history.record(nowMs, { type: "withdrawn", name, owner, buriedMs: 0 });
    }
  }

  /** A revoke writes its reason into an entry, or deletes it. */
  revoked(nowMs: number, key: string): void {
    const entry = this.#entries.get(key);
    if (!entry || entry.isRevoked) return;
    entry.isRevoked = true;
    const { name, token } = entry;
    this.#history.record(nowMs, { type: "revoked", name, token });
  }

  /** All keys of one revision were written: records which entries hold now. */
  settle(nowMs: number): void {
    for (const [name, queue] of this.#queues()) {
      const held = holdersOf(queue);
      for (const entry of queue) {
        const { owner, session: client, token } = entry;
        if (held.has(entry) && entry.state !== "granted") {
          const isHandoff = entry.state === "queued";
          this.#history.record(nowMs, {
            type: "granted",
            name,
            owner,
            client,
            token,
            span: 1,
            isHandoff,
            // The session of the entry may be renewed at any time.
            remainingMs: Number.POSITIVE_INFINITY,
            clockUs: 0,
          });
          entry.state = "granted";
        } else if (!held.has(entry) && entry.state === "new") {
          this.#history.record(nowMs, { type: "queued", name, owner, client });
          entry.state = "queued";
        }
      }
    }
  }

  /** The store keeps the entries of a session, or with these keys, for its ttl from now on. */
  extended(nowMs: number, kept: string | ReadonlySet<string>): void {
    for (const { name, token, isRevoked } of this.#grantedIn(kept)) {
      if (isRevoked) continue;
      this.#history.record(nowMs, {
        type: "extended",
        name,
        token,
        remainingMs: Number.POSITIVE_INFINITY,
      });
    }
  }

  /** The time of a session is over, and its entries, or those with these keys, are deleted next. */
  lapsed(nowMs: number, kept: string | ReadonlySet<string>): void {
    for (const { name, token } of this.#grantedIn(kept)) {
      this.#history.record(nowMs, { type: "lapsed", name, token });
    }
  }

  census(): { holders: number; waiters: number } {
    const entries = [...this.#entries.values()];
    const holders = entries.filter(({ state }) => state === "granted").length;
    return { holders, waiters: entries.length - holders };
  }

  /** In etcd an entry may move to another session: then the server tells the keys. */
  #grantedIn(kept: string | ReadonlySet<string>): QueuedEntry[] {
    const isKept = (key: string, { session }: QueuedEntry): boolean =>
      typeof kept === "string" ? session === kept : kept.has(key);
    return [...this.#entries]
      .filter(([key, entry]) => entry.state === "granted" && isKept(key, entry))
      .map(([, entry]) => entry);
  }

  #queues(): Map<string, QueuedEntry[]> {
    const queues = new Map<string, QueuedEntry[]>();
    for (const entry of this.#entries.values()) {
      const queue = queues.get(entry.name) ?? [];
      queues.set(entry.name, queue);
      queue.push(entry);
    }
    return queues;
  }
}

/** The entries at the head of the queue that may hold together. */
function holdersOf(queue: QueuedEntry[]): Set<QueuedEntry> {
  const holders = new Set<QueuedEntry>();
  let sum = 0;
  let least = Number.POSITIVE_INFINITY;
  for (const entry of queue.sort((a, b) => (a.token < b.token ? -1 : 1))) {
    const [first] = holders;
    if (first && (first.isExclusive || entry.isExclusive)) break;
    sum += entry.weight;
    least = Math.min(least, entry.limit);
    if (sum > least) break;
    holders.add(entry);
  }
  return holders;
}
