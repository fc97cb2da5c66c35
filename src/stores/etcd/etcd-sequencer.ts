import { UnsupportedError } from "../../errors.js";
import type { Space } from "../../rules/name.js";
import type { Claim, Traits } from "../../store.js";
import type { Port } from "../../time/port.js";
import type {
  Change,
  Listing,
  OwnEntry,
  Place,
  Sequencer,
  SessionLink,
  Watch,
  Watched,
} from "../sequencer/sequencer.js";
import { readText } from "../sequencer/views.js";
import { EtcdCalls } from "./etcd-calls.js";
import type { EtcdClient, KeyValue, WatchEvent } from "./etcd-client.js";
import { EtcdEntry } from "./etcd-entry.js";
import { EtcdKeys, type FoundKey, isOwnId, leaseNumber, sessionOf } from "./etcd-keys.js";
import { EtcdSession, isAt, newLeaseId, type SessionTools, wasMadeAt } from "./etcd-session.js";
import { EtcdWatches } from "./etcd-watches.js";

const TRAITS: Traits = {
  scope: "network",
  modes: ["exclusive", "shared"],
  fifo: true,
  tokenSpan: false,
  transferable: true,
  marks: true,
  minTtlMs: 2_000,
};

export interface EtcdSequencerOptions {
  readonly namespace: string;
  /** Where etcd is, for messages; "" where nobody knows. */
  readonly hosts: string;
  readonly closeClient: () => void;
  /** See `EtcdWatches`. Default: what Node says of this process. */
  readonly isIdle?: () => boolean;
}

export class EtcdSequencer implements Sequencer {
  readonly name = "etcd";
  readonly namespace: string;
  readonly traits: Traits = TRAITS;
  readonly port: Port;
  readonly #calls: EtcdCalls;
  readonly #keys: EtcdKeys;
  readonly #tools: SessionTools;
  readonly #watches: EtcdWatches;
  readonly #closeClient: () => void;

  constructor(client: EtcdClient, options: EtcdSequencerOptions, port: Port) {
    const { namespace, hosts, closeClient, isIdle = isProcessIdle } = options;
    this.namespace = namespace;
    this.port = port;
    this.#calls = new EtcdCalls(client, port, hosts);
    this.#keys = new EtcdKeys(namespace);
    this.#tools = { calls: this.#calls, keys: this.#keys, port };
    this.#watches = new EtcdWatches(client, port, isIdle);
    this.#closeClient = closeClient;
  }

  openSession(ttlMs: number, limitMs: number): Promise<SessionLink> {
    return EtcdSession.open(newLeaseId(this.port), ttlMs, this.#tools, limitMs);
  }

  async resumeSession(
    session: string,
    claim: Claim,
    limitMs: number,
  ): Promise<{ link: SessionLink; entry: OwnEntry } | null> {
    const [leaseId = "", id = ""] = session.split("/");
    if (!/^[0-9a-f]+$/.test(leaseId) || !isOwnId(id)) return null;
    const entry = new EtcdEntry(this.#keys, claim, { id, text: "", number: null });
    const success = [this.#keys.session(leaseId), entry.key].map((key) => ({
      request_range: { key },
    }));
    const { responses } = await this.#calls.txn({ success }, limitMs);
    const [guard, found] = responses.map((one) => one.response_range?.kvs[0]);
    // What is bound to another lease neither lives with this session nor may end with it.
    if (!guard || found?.lease !== leaseNumber(leaseId)) return null;
    const link = new EtcdSession(leaseId, BigInt(guard.mod_revision), this.#tools);
    entry.order = BigInt(found.create_revision);
    // Whoever made it may have left a copy of its request behind.
    entry.isDoubtful = true;
    return { link, entry };
  }

  async list(
    place: Place,
    look: "plain" | "texts",
    limitMs: number,
    since?: bigint,
  ): Promise<Listing> {
    const request = this.#keys.line(place, look);
    if (since !== undefined) {
      const near = await this.#calls.range({ ...request, serializable: true }, limitMs);
      const listing = this.#keys.listing(place, near.header, near.kvs);
      if (listing.at >= since) return listing;
    }
    const { header, kvs } = await this.#calls.range(request, limitMs);
    return this.#keys.listing(place, header, kvs);
  }

  async lines(space: Space, prefix: string, limitMs: number): Promise<Map<string, Listing>> {
    const { header, kvs } = await this.#calls.range(this.#keys.lines(space, prefix), limitMs);
    const byName = new Map<string, KeyValue[]>();
    for (const kv of kvs) {
      const name = this.#keys.nameIn(space, kv.key);
      if (name?.startsWith(prefix)) byName.set(name, [...(byName.get(name) ?? []), kv]);
    }
    const lines = [...byName].map(([name, found]) => {
      const listing = this.#keys.listing({ space, name }, header, found);
      return [name, listing] as const;
    });
    return new Map(lines);
  }

  async remainingMs(sessions: readonly string[], limitMs: number): Promise<readonly number[]> {
    return Promise.all(
      sessions.map(async (id) => {
        // An entry without a lease is kept for ever.
        if (id === "0") return Number.POSITIVE_INFINITY;
        return Math.max(0, (await this.#calls.leaseSeconds(leaseNumber(id), limitMs)) * 1000);
      }),
    );
  }

  /**
   * First writes the reason into the entry, then deletes it: its owner is told by either. Any key
   * in a line blocks it, but only one that is provably a lock entry or a mark is deleted: the
   * others belong to other programs.
   */
  async revoke(place: Place, token: bigint, reason: string, limitMs: number): Promise<boolean> {
    const { kvs } = await this.#calls.range(this.#keys.line(place), limitMs);
    const found = this.#keys.find(place, kvs, token);
    if (!found) return false;
    const { key, value, mod_revision } = found.kv;
    if (!(await this.#isRevocable(found, limitMs))) throw notRevocable(key, place);
    const deletion = [{ request_delete_range: { key } }];
    if (found.kind === "mark") {
      const compare = [isAt(key, BigInt(mod_revision))];
      return (await this.#calls.txn({ compare, success: deletion }, limitMs)).succeeded;
    }
    const compare = [wasMadeAt(key, token)];
    const text = JSON.stringify({ ...readText(value.toString(), 0), revoked: reason });
    const request_put = { key, value: Buffer.from(text), ignore_lease: true };
    // Without space nothing can be written, but deleted it must be.
    const told = await this.#calls
      .txn({ compare, success: [{ request_put }] }, limitMs)
      .catch(() => null);
    const ended = await this.#calls.txn({ compare, success: deletion }, limitMs);
    // Its owner may have been quicker to delete it.
    return ended.succeeded || told?.succeeded === true;
  }

  /** A renewal for longer than its session lasts binds an entry of ours to another session. */
  async #isRevocable({ kv, kind }: FoundKey, limitMs: number): Promise<boolean> {
    if (kind !== "moved") return kind !== "foreign";
    const key = this.#keys.session(sessionOf(kv));
    return (await this.#calls.range({ key, keys_only: true }, limitMs)).kvs.length > 0;
  }

  watch(place: Place, what: Watched, from: bigint, listener: (change: Change) => void): Watch {
    const start_revision = String(from + 1n);
    const { key, range_end } = this.#keys.line(place);
    const isLine = what.type === "leaving";
    const target = isLine ? { key, range_end } : { key: this.#keys.entry(place, what.id) };
    const prev_kv = what.type === "own" || (what.type === "entry" && what.orWritten);
    const filters = prev_kv ? [] : (["Noput"] as "Noput"[]);
    return this.#watches.open(
      { ...target, start_revision, prev_kv, filters },
      what.type === "own",
      {
        onEvents: (events) => {
          const change = changeOf(events, this.#keys.idsIn(place, events));
          if (change) listener(change);
        },
        onBehind: (at) => listener({ type: "behind", at }),
        onBroken: () => listener({ type: "broken" }),
      },
    );
  }

  async close(): Promise<void> {
    this.#watches.close();
    this.#calls.close();
    this.#closeClient();
  }
}

/** What may be open in a process that is about to end: connections, and its own output. */
const IDLE: readonly string[] = ["TCPSocketWrap", "TLSWrap", "PipeWrap", "TTYWrap"];

function isProcessIdle(): boolean {
  return process.getActiveResourcesInfo().every((type) => IDLE.includes(type));
}

function changeOf(events: readonly WatchEvent[], ids: ReadonlyMap<string, bigint>): Change | null {
  const last = events.at(-1);
  // Only keys of longer names, which are other lines.
  if (!last || ids.size === 0) return null;
  const isGone = isDelete(last);
  const text = isGone ? last.prev_kv?.value : last.kv.value;
  const revoked = text ? (readText(text.toString(), 0).revoked ?? null) : null;
  const at = BigInt(last.kv.mod_revision);
  return isGone ? { type: "gone", at, ids, revoked } : { type: "written", at, revoked };
}

function notRevocable(key: Buffer, { name }: Place): UnsupportedError {
  return new UnsupportedError(
    `The key ${JSON.stringify(key.toString())} blocks the lock, but is no lock entry: it is not ` +
      "bound to the lease in its name. It was left alone; delete it by hand if nothing needs it.",
    { lockName: name, store: "etcd" },
  );
}

function isDelete({ type }: WatchEvent): boolean {
  return type.toLowerCase() === "delete";
}
