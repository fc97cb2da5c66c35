import type { Examination, ExamineRequest } from "../../contract/examination.js";
import type { Claim, Traits } from "../../contract/store.js";
import { StoreError } from "../../errors/index.js";
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
import type { Ensemble } from "./client.js";
import { KnownQueues } from "./entry-batch.js";
import { hasCode, nullIfAbsent, zookeeperError } from "./errors.js";
import { Layout, readLocator, Zxid, zxidOf } from "./layout.js";
import { Mark, MarkSweep, ServerClock } from "./marks.js";
import { QueueReader, QueueWatches, type WatchTools } from "./queues.js";
import { revoke } from "./revoke.js";
import { SessionConnections, SessionGoneError } from "./session-connections.js";
import { WatchingSession, type ZnodeListener, ZnodeWatch } from "./watches.js";
import type { Connection } from "./wire/connection.js";
import { type Acl, childrenIn, create2, exists, remove, sync } from "./wire/requests.js";
import { MAX_TIMEOUT_MS } from "./wire/session.js";
import { type Shape, ZookeeperEntry, zookeeperEntry } from "./zookeeper-entry.js";
import { type SessionTools, ZookeeperSession } from "./zookeeper-session.js";

const TRAITS: Traits = {
  scope: "network",
  modes: ["exclusive", "shared"],
  fifo: true,
  tokenSpan: false,
  transferable: true,
  marks: true,
  minTtlMs: 100,
};
const CLOSE_MS = 1_000;

export interface ZookeeperSequencerOptions {
  readonly chroot: string;
  readonly namespace: string;
  readonly shape: Shape;
  readonly isDirect: boolean;
  readonly acl: readonly Acl[];
  /** Where ZooKeeper is, for messages. */
  readonly servers: string;
}

export class ZookeeperSequencer implements Sequencer {
  readonly name = "zookeeper";
  readonly namespace: string;
  readonly traits: Traits = TRAITS;
  readonly runtime: Runtime;
  readonly #clock: ServerClock;
  readonly #tools: SessionTools;
  readonly #watching: WatchTools;
  readonly #queueWatches: QueueWatches;
  readonly #sessions = new Set<ZookeeperSession>();

  constructor(ensemble: Ensemble, options: ZookeeperSequencerOptions) {
    const { chroot, namespace, shape, isDirect, acl, servers } = options;
    const { runtime } = ensemble;
    this.namespace = namespace;
    this.runtime = runtime;
    this.#clock = new ServerClock(runtime.clock);
    const layout = new Layout(chroot, namespace, shape);
    const known = new KnownQueues(runtime.clock);
    const reader = new QueueReader(layout, this.#clock, known);
    const session = new WatchingSession(ensemble, servers);
    this.#watching = { session, layout, reader, timers: runtime.timers };
    const sweep = new MarkSweep(this.#watching, runtime);
    const clock = this.#clock;
    this.#tools = { ensemble, isDirect, layout, reader, known, clock, sweep, acl, servers };
    this.#queueWatches = new QueueWatches(this.#watching);
  }

  async whyUnreachable(): Promise<Error | null> {
    const { ensemble, servers } = this.#tools;
    return ensemble.trouble && zookeeperError(ensemble.trouble, servers);
  }

  async openSession(ttlMs: number, limitMs: number): Promise<StoreSession> {
    const { servers } = this.#tools;
    const asked = Math.ceil(ttlMs);
    if (asked > MAX_TIMEOUT_MS) throw outOfBounds(asked, MAX_TIMEOUT_MS, servers);
    try {
      const connections = await SessionConnections.open(asked, this.#tools, limitMs);
      if (connections.timeoutMs !== asked) {
        connections.end(CLOSE_MS).catch(() => {});
        throw outOfBounds(asked, connections.timeoutMs, servers);
      }
      return this.#newSession(connections);
    } catch (error) {
      throw zookeeperError(error, servers);
    }
  }

  async resumeSession(text: string, claim: Claim, limitMs: number): Promise<Resumed | null> {
    const locator = readLocator(text);
    if (!locator) return null;
    const { layout, servers } = this.#tools;
    const { key, timeoutMs, znode } = locator;
    const connections = new SessionConnections(key, timeoutMs, this.#tools);
    const entry = new ZookeeperEntry(claim, layout.queue(claim), znode, "");
    entry.id = znode;
    try {
      const endMs = this.runtime.clock.nowMs() + limitMs;
      // A server that is behind its leader may not have the znode yet.
      const look = (withinMs: number) =>
        connections.use(
          (one) => Promise.all([one.send(sync(entry.path)), one.send(exists(entry.path))]),
          withinMs,
        );
      const [, found] = await look(limitMs).catch((error: unknown) => {
        // The end of a session closes its connections: the next one is told that it is gone.
        if (!hasCode(error, "connection_lost")) throw error;
        return look(Math.max(1, endMs - this.runtime.clock.nowMs()));
      });
      // An entry of another session neither lives nor ends with this one.
      if (found.stat?.ephemeralOwner !== key.id) {
        connections.close();
        return null;
      }
      entry.token = found.stat.czxid;
      return { storeSession: this.#newSession(connections), entry, moment: new Zxid(found.zxid) };
    } catch (error) {
      connections.close();
      if (error instanceof SessionGoneError) return null;
      throw zookeeperError(error, servers);
    }
  }

  list(lock: LockId, look: "plain" | "texts", limitMs: number): Promise<Listing> {
    const { session, reader } = this.#watching;
    return session.useLatest((connection) => reader.read(connection, lock, look), limitMs);
  }

  queues(space: Space, prefix: string, limitMs: number): Promise<Map<string, Listing>> {
    const { session, layout, reader } = this.#watching;
    return session.useLatest(async (connection) => {
      if (space === "once" && !this.#clock.isKnown) await this.#askTime(connection);
      const { names } = await connection.send(childrenIn(layout.space(space) || "/"));
      const wanted = names.flatMap((child) => layout.nameIn(child) ?? []);
      const listings = await Promise.all(
        wanted
          .filter((name) => name.startsWith(prefix))
          .map(
            async (name) =>
              [name, await reader.read(connection, { space, name }, "texts")] as const,
          ),
      );
      return new Map(listings.filter(([, { entries, mark }]) => entries.length > 0 || mark));
    }, limitMs);
  }

  /** ZooKeeper does not tell: the ttl in the text of an entry is the most that can remain. */
  async remainingMs(kept: readonly (Entry | ListedMark)[]): Promise<readonly number[]> {
    const nowMs = this.#clock.nowMs();
    return kept.map((one) => {
      return one instanceof Mark ? Math.max(0, one.endsMs - nowMs) : Number.POSITIVE_INFINITY;
    });
  }

  revoke(lock: LockId, token: bigint, reason: string, limitMs: number): Promise<boolean> {
    return revoke(this.#watching, lock, { token, reason }, limitMs);
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

  /** An entry that left before the watch began is gone when the watch looks first. */
  watchOwn(entry: OwnEntry, since: Moment, listener: (change: OwnChange) => void): Watch {
    const { session, timers } = this.#watching;
    const onChange: ZnodeListener = {
      onData: ({ data }) => {
        const { revoked } = readEntryText(data.toString(), 0);
        if (revoked === undefined) return;
        watch.close();
        listener({ type: "gone", revoked });
      },
      onGone: () => listener({ type: "gone", revoked: null }),
      onBroken: () => listener({ type: "broken" }),
    };
    const { number } = zxidOf(since);
    const watch = new ZnodeWatch(zookeeperEntry(entry).path, session, timers, onChange, number);
    return watch;
  }

  async examine(request: ExamineRequest): Promise<Examination> {
    const { ensemble, layout, acl, isDirect, servers } = this.#tools;
    const { session } = this.#watching;
    // Only a doctor needs this.
    const { examineZookeeper } = await import("./doctor.js");
    return examineZookeeper({ ensemble, layout, acl, isDirect, servers, session }, request);
  }

  async close(): Promise<void> {
    for (const session of this.#sessions) session.close();
    await this.#watching.session.close(CLOSE_MS);
  }

  /** The time in a znode that is made for it: without it, no mark is certain to be over. */
  async #askTime(connection: Connection): Promise<void> {
    const { layout, acl } = this.#tools;
    const request = create2(layout.timeZnode(this.runtime.random.id()), { mode: "ephemeral", acl });
    const made = await connection.send(request).catch(nullIfAbsent);
    if (!made) return;
    this.#clock.learn(made.stat.createdMs);
    await connection.send(remove(made.path));
  }

  #newSession(connections: SessionConnections): ZookeeperSession {
    const session = new ZookeeperSession(connections, this.#tools, () =>
      this.#sessions.delete(session),
    );
    this.#sessions.add(session);
    return session;
  }
}

function outOfBounds(askedMs: number, grantedMs: number, servers: string): StoreError {
  const bound = grantedMs < askedMs ? "at most" : "at least";
  const setting = grantedMs < askedMs ? "maxSessionTimeout" : "minSessionTimeout";
  const isFixed = grantedMs === MAX_TIMEOUT_MS;
  return new StoreError(
    `ZooKeeper at ${servers} keeps a session for ${bound} ${grantedMs} ms, and ttlMs is ` +
      `${askedMs}. Choose a ttlMs within its bounds` +
      (isFixed ? "." : `, or change ${setting} on the servers.`),
    { outcome: "not_applied", retryable: false },
  );
}
