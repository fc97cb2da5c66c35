/**
 * A session of ZooKeeper that holds entries, which are its ephemeral znodes.
 *
 * A late copy of a request makes no ghost: when the session is resumed, ZooKeeper closes the
 * connection that had the request, or refuses what still comes from there. Between two connections
 * to one server, that is up to the threads of the server. So a session that gave up a request
 * without having found its znode takes no new entries: a ghost ends with its session at the latest.
 */
import type { Claim } from "../../contract/store.js";
import { present } from "../../errors/assert.js";
import { StoreError } from "../../errors/index.js";
import type {
  EnterCase,
  Entering,
  LeaveOptions,
  Leaving,
  Listing,
  OwnEntry,
  Proof,
  StoreSession,
} from "../../families/session/sequencer.js";
import { holderCount } from "../../families/session/standing.js";
import { EntryBatch, type KnownQueues, type WriteReply } from "./entry-batch.js";
import { hasCode, isUnknown, nullIfAbsent, zookeeperError } from "./errors.js";
import { type Layout, locatorText, makeParents, Zxid } from "./layout.js";
import { type MarkSweep, markData, type ServerClock } from "./marks.js";
import { onlyEntry, type QueueReader } from "./queues.js";
import {
  type ServerChoice,
  type SessionConnections,
  SessionGoneError,
} from "./session-connections.js";
import type { Connection } from "./wire/connection.js";
import {
  type Acl,
  check,
  childrenIn,
  create2,
  exists,
  multi,
  remove,
  setData,
  sync,
} from "./wire/requests.js";
import { ZookeeperEntry, zookeeperEntry } from "./zookeeper-entry.js";

export interface SessionTools extends ServerChoice {
  readonly layout: Layout;
  readonly reader: QueueReader;
  readonly known: KnownQueues;
  readonly clock: ServerClock;
  readonly sweep: MarkSweep;
  readonly acl: readonly Acl[];
  /** Where ZooKeeper is, for messages. */
  readonly servers: string;
}

export class ZookeeperSession implements StoreSession {
  readonly #connections: SessionConnections;
  readonly #tools: SessionTools;
  readonly #onEnd: () => void;
  readonly #batch: EntryBatch;
  #mayHaveGhosts = false;

  /** `onEnd`: the session is not used any more. */
  constructor(connections: SessionConnections, tools: SessionTools, onEnd: () => void) {
    this.#connections = connections;
    this.#tools = tools;
    this.#onEnd = onEnd;
    this.#batch = new EntryBatch(tools.ensemble.runtime, tools.known);
  }

  get takesEntries(): boolean {
    return !this.#mayHaveGhosts;
  }

  makeEntry(claim: Claim, text: string): ZookeeperEntry {
    const { layout, ensemble } = this.#tools;
    const prefix = layout.entryPrefix(claim, ensemble.runtime.random.id());
    return new ZookeeperEntry(claim, layout.queue(claim), prefix, text);
  }

  locatorOf({ id }: OwnEntry): string {
    const { key, timeoutMs } = this.#connections;
    return locatorText({ key, timeoutMs, znode: id });
  }

  enter(given: OwnEntry, enterCase: EnterCase, limitMs: number): Promise<Entering> {
    const entry = zookeeperEntry(given);
    const work = (connection: Connection) => this.#enter(connection, entry, enterCase);
    return this.#call(work, limitMs, { type: "gone" });
  }

  leave(given: OwnEntry, options: LeaveOptions, limitMs: number): Promise<Leaving> {
    const entry = zookeeperEntry(given);
    const ifGone = { wasThere: false, listing: null, nextAt: null };
    return this.#call((connection) => this.#leave(connection, entry, options), limitMs, ifGone);
  }

  async prove(entries: readonly OwnEntry[], limitMs: number): Promise<Proof> {
    try {
      return await proveSession(this.#connections, entries, limitMs);
    } catch (error) {
      throw zookeeperError(error, this.#tools.servers);
    }
  }

  async write(given: OwnEntry, text: string, limitMs: number): Promise<void> {
    const { path } = zookeeperEntry(given);
    await this.#call((connection) => connection.send(setData(path, Buffer.from(text))), limitMs);
  }

  async end(limitMs: number): Promise<void> {
    await this.#connections.end(limitMs).finally(() => {
      this.close();
      this.#onEnd();
    });
  }

  /** Leaves the session to its timeout, or to the process that resumes it. */
  close(): void {
    this.#connections.close();
  }

  /** `ifGone`: the answer when the session is over. */
  async #call<T>(
    work: (connection: Connection) => Promise<T>,
    limitMs: number,
    ifGone?: T,
  ): Promise<T> {
    try {
      return await this.#connections.use(work, limitMs);
    } catch (error) {
      if (!(error instanceof SessionGoneError)) throw zookeeperError(error, this.#tools.servers);
      if (ifGone === undefined) throw error;
      return ifGone;
    }
  }

  async #enter(
    connection: Connection,
    entry: ZookeeperEntry,
    enterCase: EnterCase,
  ): Promise<Entering> {
    const { reader } = this.#tools;
    // The server of this connection may also be behind the one that made the entry.
    if (entry.unanswered > 0 || entry.isMade) await this.#find(connection, entry);
    if (enterCase === "behind") {
      if (!entry.isMade) await this.#make(connection, entry, async () => null);
      return { type: "behind", moment: new Zxid(entry.token) };
    }
    const read = (): Promise<Listing> => reader.read(connection, entry.lock, "plain");
    const listing = entry.isMade
      ? await read()
      : ((await this.#make(connection, entry, read)) ?? onlyEntry(entry));
    if (listing.mark) return { type: "refused", listing, mayStillArrive: true };
    const index = listing.entries.findIndex(({ id }) => id === entry.id);
    if (index < 0) {
      entry.made("", 0n);
      throw new StoreError("The entry was removed as soon as it was made.", { outcome: "unknown" });
    }
    const isWaiting = index >= holderCount(listing.entries);
    return {
      type: "entered",
      listing: isWaiting ? await reader.withFirstText(connection, entry.lock, listing) : listing,
    };
  }

  /**
   * Asks for the znode, and by `read` for the queue as it was with the znode, or later. Null where
   * the znode is the only child.
   */
  async #make<T>(
    connection: Connection,
    entry: ZookeeperEntry,
    read: () => Promise<T>,
  ): Promise<T | null> {
    const { acl } = this.#tools;
    const { lock, queue, prefix, text } = entry;
    const data = Buffer.from(text);
    const request = create2(`${queue}/${prefix}`, { data, mode: "ephemeral_sequential", acl });
    // A mark counts by the clock of the leader, so this client must know that time before it reads.
    const needsTime = lock.space === "once";
    const dataBytes = data.length;
    for (let isSeparate = false; ; isSeparate = true) {
      if (entry.isWithdrawn)
        throw new StoreError("The entry is withdrawn.", { outcome: "unknown" });
      entry.unanswered += 1;
      const write = { connection, queue, request, dataBytes, needsTime, isSeparate };
      const sent = this.#batch.send(write, read);
      const making = sent.written.then(
        (written) => this.#onWritten(entry, written),
        (error: unknown) => {
          if (!isUnknown(error)) entry.unanswered -= 1;
          if (hasCode(error, "no_node")) return "no_queue";
          throw error;
        },
      );
      const [state, listing] = await Promise.all([making, sent.behind]);
      if (state === "made") return listing;
      if (state === "no_queue") await makeParents(connection, queue, acl);
    }
  }

  #onWritten(entry: ZookeeperEntry, written: WriteReply): "made" | "refused" {
    entry.unanswered -= 1;
    if (written.type === "refused") return "refused";
    const { path, atMs, zxid } = written;
    entry.made(present(path, "a znode was made").slice(entry.queue.length + 1), zxid);
    if (atMs !== null) this.#tools.clock.learn(atMs);
    return "made";
  }

  /**
   * Finds the znode of a request that was not answered. The server of this connection may be behind
   * the one that made the znode, so it is brought up to date first.
   */
  async #find(connection: Connection, entry: ZookeeperEntry): Promise<void> {
    const { clock } = this.#tools;
    const { queue, prefix } = entry;
    // The request may have been asked for in this very turn.
    this.#batch.flush();
    // rule: lost-entry-is-looked-for-after-a-sync
    const [, { names }] = await Promise.all([
      connection.send(sync(queue)),
      connection.send(childrenIn(queue)),
    ]);
    const own = names.filter((name) => name.startsWith(prefix) && name !== entry.id);
    for (const name of own) {
      const { stat } = await connection.send(exists(`${queue}/${name}`));
      entry.unanswered = Math.max(0, entry.unanswered - 1);
      if (!entry.isMade && stat) {
        entry.made(name, stat.czxid);
        // The wall clock of this machine may be ahead, and would end a mark early.
        clock.learn(stat.createdMs);
      } else if (stat) await connection.send(remove(`${queue}/${name}`)).catch(nullIfAbsent);
    }
  }

  async #leave(
    connection: Connection,
    entry: ZookeeperEntry,
    { look, next, mark }: LeaveOptions,
  ): Promise<Leaving> {
    const { reader } = this.#tools;
    if (entry.unanswered > 0) await this.#find(connection, entry);
    if (entry.unanswered > 0) this.#mayHaveGhosts = true;
    const read = async (): Promise<Omit<Leaving, "wasThere">> => {
      if (next) return { listing: null, nextAt: await seenAt(connection, next) };
      const listing = look ? await reader.read(connection, entry.lock, "plain") : null;
      return { listing, nextAt: null };
    };
    if (entry.isMade && !mark) return this.#remove(connection, entry, read);
    const wasThere = mark ? await this.#replace(connection, entry, mark) : false;
    return { wasThere, ...(await read()) };
  }

  async #remove(
    connection: Connection,
    { path, queue }: ZookeeperEntry,
    read: () => Promise<Omit<Leaving, "wasThere">>,
  ): Promise<Leaving> {
    const request = remove(path);
    for (let isSeparate = false; ; isSeparate = true) {
      const write = { connection, queue, request, dataBytes: 0, needsTime: false, isSeparate };
      const sent = this.#batch.send(write, read);
      const removing = sent.written.catch(nullIfAbsent);
      const [written, seen] = await Promise.all([removing, sent.behind]);
      if (written?.type === "refused") continue;
      return { wasThere: written !== null, listing: null, nextAt: null, ...seen };
    }
  }

  /** Removes the entry and leaves the mark in one step. */
  async #replace(
    connection: Connection,
    { path, lock, token }: ZookeeperEntry,
    { ttlMs, text }: NonNullable<LeaveOptions["mark"]>,
  ): Promise<boolean> {
    const { layout, sweep, acl } = this.#tools;
    const mark = create2(layout.mark(lock, token), { data: markData(ttlMs, text), acl });
    const reply = await connection.send(multi([remove(path), mark]));
    if (reply.type === "done") {
      sweep.onMark();
      return true;
    }
    if (reply.at === 0 && hasCode(reply.error, "no_node")) return false;
    throw reply.error;
  }
}

/** A moment at which the entry is there; null if the server does not have it. */
async function seenAt(connection: Connection, entry: OwnEntry): Promise<Zxid | null> {
  const { stat, zxid } = await connection.send(exists(zookeeperEntry(entry).path));
  return stat?.czxid === entry.token ? new Zxid(zxid) : null;
}

/**
 * The proof that ZooKeeper keeps a session: the session is resumed on a new connection, and a
 * `multi` that checks the session's own znodes is answered on that very connection.
 *
 * Neither part is enough. A server that is cut off from its leader answers pings, and a leader that
 * was deposed resumes sessions. A `multi` through a follower is committed by a quorum, but does not
 * touch the session at the leader. Together they prove it. The server tells the leader of the
 * resume before it forwards the `multi`, in one stream, so the leader of that quorum counts the
 * timeout from a moment after the resume was sent. Every later leader begins all timeouts anew.
 *
 * On a connection to the leader itself, the `multi` alone is enough: the leader touches a session
 * with every request of its own clients.
 */

/** A request has at most 1 MB, and the path of an entry less than 2 kB. */
const MAX_CHECKS = 500;
/** Exists in every ZooKeeper. */
const ROOT = "/";

export async function proveSession(
  connections: SessionConnections,
  entries: readonly OwnEntry[],
  limitMs: number,
): Promise<Proof> {
  try {
    const missing = await connections.prove((connection) => {
      // Requests that were under way have been answered by now.
      const made = entries.map(zookeeperEntry).filter(({ isMade }) => isMade);
      return findMissing(connection, made);
    }, limitMs);
    return { type: "proven", ttlMs: connections.timeoutMs, missing };
  } catch (error) {
    if (error instanceof SessionGoneError) return { type: "gone" };
    throw error;
  }
}

async function findMissing(
  connection: Connection,
  entries: readonly ZookeeperEntry[],
): Promise<ReadonlySet<OwnEntry>> {
  const missing = new Set<OwnEntry>();
  // A session without entries is kept for those to come.
  if (entries.length === 0) await connection.send(multi([check(ROOT)]));
  for (let index = 0; index < entries.length; index += MAX_CHECKS) {
    let asked = entries.slice(index, index + MAX_CHECKS);
    while (asked.length > 0) {
      const reply = await connection.send(multi(asked.map(({ path }) => check(path))));
      if (reply.type === "done") break;
      const absent = asked[reply.at];
      if (!absent || !hasCode(reply.error, "no_node")) throw reply.error;
      missing.add(absent);
      asked = asked.filter((entry) => entry !== absent);
    }
  }
  return missing;
}
