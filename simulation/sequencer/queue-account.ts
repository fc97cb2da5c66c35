/**
 * The account of the queues in the simulated etcd, for the checkers: which entry was queued,
 * granted, withdrawn or revoked, and when. The account reads the keys by itself and does not use
 * the rules that it helps to check.
 */
import type { KeyValue } from "../../src/stores/etcd/etcd-client.js";
import type { History } from "../history.js";

const ENTRY = /^(?:holdfast:(once)\/)?([^/]*)\/([0-9a-f]+)\.([xs])\.(\d+)\.(\d+|-)\.[\w-]+$/;

interface QueuedEntry {
  readonly token: bigint;
  readonly owner: string;
  readonly session: string;
  readonly isExclusive: boolean;
  readonly weight: number;
  readonly limit: number;
  state: "new" | "queued" | "granted";
  isRevoked: boolean;
}

export class QueueAccount {
  readonly #history: History;
  readonly #queues = new Map<string, Map<string, QueuedEntry>>();

  constructor(history: History) {
    this.#history = history;
  }

  /** One key was written; null: deleted. */
  changed(nowMs: number, key: string, kv: KeyValue | null): void {
    const found = ENTRY.exec(key);
    if (!found) return;
    const [, once, name = "", session = "", letter, weight, limit] = found;
    const label = once ? `once ${name}` : name;
    const queue = this.#queues.get(label) ?? new Map<string, QueuedEntry>();
    this.#queues.set(label, queue);
    const before = queue.get(key);
    if (kv && !before) {
      const token = BigInt(kv.create_revision);
      queue.set(key, {
        token,
        owner: `${key}@${token}`,
        session,
        isExclusive: letter === "x",
        weight: Number(weight),
        limit: limit === "-" ? Number.POSITIVE_INFINITY : Number(limit),
        state: "new",
        isRevoked: false,
      });
    } else if (kv && before) {
      if (kv.value.includes('"revoked"')) this.revoked(nowMs, key);
    } else if (before) {
      queue.delete(key);
      if (before.state === "granted") return;
      const { owner } = before;
      this.#history.record(nowMs, { type: "withdrawn", name: label, owner, isBuried: false });
    }
  }

  /** A revoke writes its reason into an entry, or deletes it. */
  revoked(nowMs: number, key: string): void {
    for (const [name, queue] of this.#queues) {
      const entry = queue.get(key);
      if (!entry || entry.isRevoked) continue;
      entry.isRevoked = true;
      this.#history.record(nowMs, { type: "revoked", name, token: entry.token });
    }
  }

  /** All keys of one revision were written: records which entries hold now. */
  settle(nowMs: number): void {
    for (const [name, queue] of this.#queues) {
      const held = holdersOf([...queue.values()]);
      for (const entry of queue.values()) {
        const { owner, session: client, token } = entry;
        if (held.has(entry) && entry.state !== "granted") {
          const isHandoff = entry.state === "queued";
          const granted = { name, owner, client, token, span: 1, isHandoff, clockUs: 0 };
          this.#history.record(nowMs, { type: "granted", ...granted });
          entry.state = "granted";
        } else if (!held.has(entry) && entry.state === "new") {
          this.#history.record(nowMs, { type: "queued", name, owner, client });
          entry.state = "queued";
        }
      }
    }
  }

  /** The store keeps the sessions for their ttl from now on. */
  extended(nowMs: number, sessions: ReadonlySet<string>): void {
    for (const [name, queue] of this.#queues) {
      for (const { session, state, token } of queue.values()) {
        if (state !== "granted" || !sessions.has(session)) continue;
        this.#history.record(nowMs, { type: "extended", name, token });
      }
    }
  }

  census(): { holders: number; waiters: number } {
    const entries = [...this.#queues.values()].flatMap((queue) => [...queue.values()]);
    const holders = entries.filter(({ state }) => state === "granted").length;
    return { holders, waiters: entries.length - holders };
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
