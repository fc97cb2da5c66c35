import type { Examination, ExamineRequest } from "../../examination.js";
import type { Space } from "../../rules/name.js";
import type { Claim, Traits } from "../../store.js";
import type { Port } from "../../time/port.js";
import { readEntryText } from "../sequencer/entry-text.js";
import type {
  Entry,
  ListedMark,
  Listing,
  LockId,
  Moment,
  Obstacle,
  OwnChange,
  OwnEntry,
  QueueChange,
  QueueWatch,
  Resumed,
  Sequencer,
  SessionLink,
  Watch,
} from "../sequencer/sequencer.js";
import type { Address } from "../store-url.js";
import { unreachable } from "../unreachable.js";
import { EtcdCalls } from "./etcd-calls.js";
import type { EtcdClient, KeyValue, WatchEvent } from "./etcd-client.js";
import { EtcdEntry, etcdEntry } from "./etcd-entry.js";
import { EtcdSession, type SessionTools } from "./etcd-session.js";
import { EtcdWatches } from "./etcd-watches.js";
import { Layout } from "./layout.js";
import { leaseNumber } from "./lease-id.js";
import { readLocator } from "./locator.js";
import { QueueReader } from "./queue-reader.js";
import { QueueWatches } from "./queue-watches.js";
import { Revision, revisionOf } from "./revision.js";
import { revoke } from "./revocation.js";
import { mayEndLiveLeases, warnOfVersion } from "./version.js";

const TRAITS: Traits = {
  scope: "network",
  modes: ["exclusive", "shared"],
  fifo: true,
  tokenSpan: false,
  transferable: true,
  marks: true,
  minTtlMs: 2_000,
};

const STATUS_MS = 1_500;

export interface EtcdSequencerOptions {
  readonly namespace: string;
  /** Where etcd is, for messages; "" where it is not known. */
  readonly hosts: string;
  /** The servers of a client that was passed in, as far as it shows them. */
  readonly servers?: readonly Address[];
  readonly closeClient: () => void;
  /** See `EtcdWatches`. Default: what Node says of this process. */
  readonly isIdle?: () => boolean;
}

export class EtcdSequencer implements Sequencer {
  readonly name = "etcd";
  readonly namespace: string;
  readonly traits: Traits = TRAITS;
  readonly port: Port;
  readonly #tools: SessionTools;
  readonly #reader: QueueReader;
  readonly #watches: EtcdWatches;
  readonly #queueWatches: QueueWatches;
  readonly #servers: readonly Address[];
  readonly #closeClient: () => void;
  #isVersionAsked = false;
  #look: Promise<Error | null> | null = null;

  constructor(client: EtcdClient, options: EtcdSequencerOptions, port: Port) {
    const { namespace, hosts, servers = [], closeClient, isIdle = isProcessIdle } = options;
    this.namespace = namespace;
    this.#servers = servers;
    this.port = port;
    const calls = new EtcdCalls(client, port, hosts);
    const layout = new Layout(namespace);
    this.#tools = { calls, layout, port };
    this.#reader = new QueueReader(calls, layout);
    this.#watches = new EtcdWatches(client, port, isIdle);
    const tools = { watches: this.#watches, layout, reader: this.#reader, timers: port.timers };
    this.#queueWatches = new QueueWatches(tools);
    this.#closeClient = closeClient;
  }

  /** The package `etcd3` may say only that there is no connection, or that it did not try. */
  whyUnreachable(): Promise<Error | null> {
    // One look serves all calls that end in an outage.
    this.#look ??= this.#lookForServers().finally(() => {
      this.#look = null;
    });
    return this.#look;
  }

  async #lookForServers(): Promise<Error | null> {
    const cause = await unreachable(this.#servers);
    const places = this.#servers.map(({ host, port }) => `${host}:${port}`).join(", ");
    return cause && new Error(`No etcd answers at ${places} (${cause.message}).`, { cause });
  }

  openSession(ttlMs: number, limitMs: number): Promise<SessionLink> {
    void this.checkVersion();
    return EtcdSession.open(ttlMs, this.#tools, limitMs);
  }

  /** Warns of a faulty server, once. Nothing waits for it. */
  async checkVersion(): Promise<void> {
    if (this.#isVersionAsked) return;
    this.#isVersionAsked = true;
    try {
      const { version } = await this.#tools.calls.status(STATUS_MS);
      if (mayEndLiveLeases(version)) warnOfVersion(version, this.namespace);
    } catch {
      // The first session asks again.
      this.#isVersionAsked = false;
    }
  }

  async resumeSession(text: string, claim: Claim, limitMs: number): Promise<Resumed | null> {
    const locator = readLocator(text);
    if (!locator) return null;
    const { leaseId, entryId: id } = locator;
    const { calls, layout } = this.#tools;
    const keys = [layout.session(leaseId), layout.entry(claim, id)];
    const success = keys.map((key) => ({ request_range: { key } }));
    const { header, responses } = await calls.txn({ success }, limitMs);
    const [guard, found] = responses.map((one) => one.response_range?.kvs[0]);
    // An entry that is bound to another lease neither lives nor ends with this session.
    if (!guard || found?.lease !== leaseNumber(leaseId)) return null;
    const link = new EtcdSession(leaseId, BigInt(guard.mod_revision), this.#tools);
    const entry = new EtcdEntry(layout, claim, { id, text: "", number: null, maker: link });
    entry.token = BigInt(found.create_revision);
    // The process that made the entry may have left a copy of its request behind.
    entry.isDoubtful = true;
    return { link, entry, moment: new Revision(header.revision) };
  }

  list(lock: LockId, look: "plain" | "texts", limitMs: number): Promise<Listing> {
    return this.#reader.list(lock, look, limitMs);
  }

  async queues(space: Space, prefix: string, limitMs: number): Promise<Map<string, Listing>> {
    const { calls, layout } = this.#tools;
    const { header, kvs } = await calls.range(layout.queues(space, prefix), limitMs);
    const byName = new Map<string, KeyValue[]>();
    for (const kv of kvs) {
      const name = layout.nameIn(space, kv.key);
      if (name?.startsWith(prefix)) byName.set(name, [...(byName.get(name) ?? []), kv]);
    }
    const queues = [...byName].map(([name, found]) => {
      return [name, layout.listing({ space, name }, header, found)] as const;
    });
    return new Map(queues);
  }

  async remainingMs(
    kept: readonly (Entry | ListedMark)[],
    limitMs: number,
  ): Promise<readonly number[]> {
    const asked = new Map<string, Promise<number>>();
    for (const { session } of kept) {
      if (!asked.has(session)) asked.set(session, this.#remainingMs(session, limitMs));
    }
    return Promise.all(kept.map(({ session }) => asked.get(session) ?? 0));
  }

  /** An entry without a lease is kept for ever. */
  async #remainingMs(leaseId: string, limitMs: number): Promise<number> {
    if (leaseId === "0") return Number.POSITIVE_INFINITY;
    const seconds = await this.#tools.calls.leaseSeconds(leaseNumber(leaseId), limitMs);
    return Math.max(0, seconds * 1000);
  }

  revoke(lock: LockId, token: bigint, reason: string, limitMs: number): Promise<boolean> {
    return revoke(this.#tools, lock, { token, reason }, limitMs);
  }

  watchQueue(
    lock: LockId,
    obstacle: Obstacle,
    listing: Listing,
    listener: (change: QueueChange) => void,
  ): QueueWatch {
    return obstacle.type === "leaving"
      ? this.#queueWatches.watchLeaving(lock, listing, listener)
      : this.#queueWatches.watchEntry(lock, obstacle, listing, listener);
  }

  watchOwn(entry: OwnEntry, since: Moment, listener: (change: OwnChange) => void): Watch {
    const range = { key: etcdEntry(entry).key, prev_kv: true, filters: [] };
    const target = { ...range, since: revisionOf(since), isReplayed: true };
    return this.#watches.open(target, true, {
      onEvents: (events) => {
        const change = endIn(events);
        if (change) listener(change);
      },
      // An end of the entry before the watch began is told a moment later.
      onBehind: () => {},
      onBroken: () => listener({ type: "broken" }),
    });
  }

  async examine(request: ExamineRequest): Promise<Examination> {
    // Only a doctor needs this.
    const { examineEtcd } = await import("./examination.js");
    return examineEtcd(this.#tools, request);
  }

  async close(): Promise<void> {
    this.#queueWatches.close();
    this.#watches.close();
    this.#tools.calls.close();
    this.#closeClient();
  }
}

/** Open in a process that is about to end: connections, and its own output. */
const IDLE: readonly string[] = ["TCPSocketWrap", "TLSWrap", "PipeWrap", "TTYWrap"];

function isProcessIdle(): boolean {
  return process.getActiveResourcesInfo().every((type) => IDLE.includes(type));
}

/** A revoke writes its reason into the entry, then deletes it: either is the end. */
function endIn(events: readonly WatchEvent[]): OwnChange | null {
  for (const { type, kv, prev_kv } of events) {
    const isDeleted = type.toLowerCase() === "delete";
    const text = isDeleted ? prev_kv?.value : kv.value;
    const revoked = text ? (readEntryText(text.toString(), 0).revoked ?? null) : null;
    if (isDeleted || revoked !== null) return { type: "gone", revoked };
  }
  return null;
}
