/**
 * What the lines of the simulated etcd show, for the checkers: which entry was queued, granted,
 * withdrawn or revoked, and when. The account reads the keys by itself and does not use the rules
 * that it helps to check.
 */
import type { KeyValue } from "../../src/stores/etcd/etcd-client.js";
import type { History } from "../history.js";

const ENTRY = /^(?:holdfast:(once)\/)?([^/]*)\/([0-9a-f]+)\.([xs])\.(\d+)\.(\d+|-)\.[\w-]+$/;

interface LineEntry {
  readonly order: bigint;
  readonly owner: string;
  readonly session: string;
  readonly isExclusive: boolean;
  readonly weight: number;
  readonly limit: number;
  state: "new" | "queued" | "granted";
  isRevoked: boolean;
}

export class LineAccount {
  readonly #history: History;
  readonly #lines = new Map<string, Map<string, LineEntry>>();

  constructor(history: History) {
    this.#history = history;
  }

  /** One key was written; null: deleted. */
  changed(nowMs: number, key: string, kv: KeyValue | null): void {
    const found = ENTRY.exec(key);
    if (!found) return;
    const [, once, name = "", session = "", letter, weight, limit] = found;
    const label = once ? `once ${name}` : name;
    const line = this.#lines.get(label) ?? new Map<string, LineEntry>();
    this.#lines.set(label, line);
    const before = line.get(key);
    if (kv && !before) {
      const order = BigInt(kv.create_revision);
      line.set(key, {
        order,
        owner: `${key}@${order}`,
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
      line.delete(key);
      if (before.state === "granted") return;
      const { owner } = before;
      this.#history.record(nowMs, { type: "withdrawn", name: label, owner, isBuried: false });
    }
  }

  /** Another than its owner ends an entry: it says why, or deletes it. */
  revoked(nowMs: number, key: string): void {
    for (const [name, line] of this.#lines) {
      const entry = line.get(key);
      if (!entry || entry.isRevoked) continue;
      entry.isRevoked = true;
      this.#history.record(nowMs, { type: "revoked", name, token: entry.order });
    }
  }

  /** All keys of one revision were written: who holds now? */
  settle(nowMs: number): void {
    for (const [name, line] of this.#lines) {
      const held = holdersOf([...line.values()]);
      for (const entry of line.values()) {
        const { owner, session: client, order: token } = entry;
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
    for (const [name, line] of this.#lines) {
      for (const { session, state, order: token } of line.values()) {
        if (state !== "granted" || !sessions.has(session)) continue;
        this.#history.record(nowMs, { type: "extended", name, token });
      }
    }
  }

  census(): { holders: number; waiters: number } {
    const entries = [...this.#lines.values()].flatMap((line) => [...line.values()]);
    const holders = entries.filter(({ state }) => state === "granted").length;
    return { holders, waiters: entries.length - holders };
  }
}

/** Those at the head of the line that are compatible with each other. */
function holdersOf(line: LineEntry[]): Set<LineEntry> {
  const holders = new Set<LineEntry>();
  let sum = 0;
  let least = Number.POSITIVE_INFINITY;
  for (const entry of line.sort((a, b) => (a.order < b.order ? -1 : 1))) {
    const [first] = holders;
    if (first && (first.isExclusive || entry.isExclusive)) break;
    sum += entry.weight;
    least = Math.min(least, entry.limit);
    if (sum > least) break;
    holders.add(entry);
  }
  return holders;
}
