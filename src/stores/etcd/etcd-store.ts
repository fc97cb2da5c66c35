import type { Examination, ExamineRequest } from "../../contract/examination.js";
import type { Claim, Traits } from "../../contract/store.js";
import { readEntryText } from "../../families/session/entry-text.js";
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
  StoreSession,
  Watch,
} from "../../families/session/sequencer.js";
import type { Space } from "../../rules/name.js";
import type { Runtime } from "../../time/runtime.js";
import { EtcdCalls } from "./calls.js";
import { type EtcdClient, mayEndLiveLeases, warnOfVersion } from "./client.js";
import { EtcdEntry, etcdEntry } from "./etcd-entry.js";
import { EtcdSession, type SessionTools } from "./etcd-session.js";
import { Layout, leaseIdOf, leaseNumber, Revision, readLocator, revisionOf } from "./layout.js";
import { Queues } from "./queues.js";
import { revoke } from "./revoke.js";
import { EtcdWatches } from "./watches.js";
import type { KeyValue, WatchEvent } from "./wire/messages.js";

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

/** The sequencer in etcd. Closing it closes its client. */
export class EtcdSequencer implements Sequencer {
  readonly name = "etcd";
  readonly namespace: string;
  readonly traits: Traits = TRAITS;
  readonly runtime: Runtime;
  readonly #client: EtcdClient;
  readonly #tools: SessionTools;
  readonly #watches: EtcdWatches;
  readonly #queues: Queues;
  #isVersionChecked = false;

  /** `hosts`: where etcd is, for messages. */
  constructor(
    client: EtcdClient,
    { namespace, hosts }: { readonly namespace: string; readonly hosts: string },
    runtime: Runtime,
  ) {
    this.#client = client;
    this.namespace = namespace;
    this.runtime = runtime;
    const calls = new EtcdCalls(client, runtime, hosts);
    const layout = new Layout(namespace);
    this.#tools = { calls, layout, runtime };
    this.#watches = new EtcdWatches(client, runtime);
    this.#queues = new Queues({ calls, layout, watches: this.#watches, timers: runtime.timers });
  }

  openSession(ttlMs: number, limitMs: number): Promise<StoreSession> {
    void this.checkVersion();
    return EtcdSession.open(ttlMs, this.#tools, limitMs);
  }

  /** Warns of a faulty server, once. Nothing waits for it. */
  async checkVersion(): Promise<void> {
    if (this.#isVersionChecked) return;
    this.#isVersionChecked = true;
    try {
      const { version } = await this.#tools.calls.status(STATUS_MS);
      if (mayEndLiveLeases(version)) warnOfVersion(version, this.namespace);
    } catch {
      // The first session asks again.
      this.#isVersionChecked = false;
    }
  }

  async resumeSession(text: string, claim: Claim, limitMs: number): Promise<Resumed | null> {
    const locator = readLocator(text);
    if (!locator) return null;
    const { entryId: id } = locator;
    const { calls, layout } = this.#tools;
    const read = async (leaseId: string) => {
      const keys = [layout.session(leaseId), layout.entry(claim, id)];
      const success = keys.map((key) => ({ requestRange: { key } }));
      const { header, responses } = await calls.txn({ success }, limitMs);
      const [guard, found] = responses.map((one) => one.responseRange?.kvs[0]);
      return { leaseId, header, guard, found };
    };
    let look = await read(locator.leaseId);
    // A renewal for a longer time has moved the entry since the handle was made.
    const isMoved = look.found && look.found.lease !== leaseNumber(look.leaseId);
    if (look.found && isMoved) look = await read(leaseIdOf(look.found));
    const { leaseId, header, guard, found } = look;
    // An entry that is bound to another lease neither lives nor ends with this session.
    if (!guard || found?.lease !== leaseNumber(leaseId)) return null;
    const storeSession = new EtcdSession(leaseId, guard.modRevision, this.#tools);
    const entry = new EtcdEntry(layout, claim, { id, text: "", number: null, maker: storeSession });
    entry.token = found.createRevision;
    // A copy of the request of the process that made the entry may still arrive.
    entry.creationMayStillArrive = true;
    return { storeSession, entry, moment: new Revision(header.revision) };
  }

  list(lock: LockId, look: "plain" | "texts", limitMs: number): Promise<Listing> {
    return this.#queues.list(lock, look, limitMs);
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

  /** An entry without a lease stays forever. */
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
      ? this.#queues.watchLeaving(lock, listing, listener)
      : this.#queues.watchEntry(lock, obstacle, listing, listener);
  }

  watchOwn(entry: OwnEntry, since: Moment, listener: (change: OwnChange) => void): Watch {
    const range = { key: etcdEntry(entry).key, prevKv: true, filters: [] };
    const target = { ...range, since: revisionOf(since), isReplayed: true };
    return this.#watches.open(target, {
      onEvents: (events) => {
        const change = endIn(events);
        if (change) listener(change);
      },
      // If the entry left before the watch began, etcd reports that a moment later.
      onBehind: () => {},
      onBroken: () => listener({ type: "broken" }),
    });
  }

  async examine(request: ExamineRequest): Promise<Examination> {
    const { examineEtcd } = await import("./doctor.js");
    return examineEtcd(this.#tools, request);
  }

  async close(): Promise<void> {
    this.#queues.close();
    this.#watches.close();
    this.#tools.calls.close();
    this.#client.close();
  }
}

/** A revoke writes its reason into the entry, then deletes it: either is the end. */
function endIn(events: readonly WatchEvent[]): OwnChange | null {
  for (const { type, kv, prevKv } of events) {
    const isDeleted = type === "Delete";
    const text = isDeleted ? prevKv?.value : kv.value;
    const revoked = text ? (readEntryText(text.toString(), 0).revoked ?? null) : null;
    if (isDeleted || revoked !== null) return { type: "gone", revoked };
  }
  return null;
}
