/** Reads queues from ZooKeeper, on any connection. */
import type {
  Entry,
  Listing,
  LockId,
  Obstacle,
  OwnEntry,
  QueueChange,
  QueueWatch,
} from "../../families/session/sequencer.js";
import { holderCount } from "../../families/session/standing.js";
import type { Timers } from "../../time/timers.js";
import type { KnownQueues } from "./entry-batch.js";
import { nullIfAbsent } from "./errors.js";
import { type Layout, Zxid, zxidOf } from "./layout.js";
import { Mark, type ServerClock } from "./marks.js";
import { type WatchingSession, type ZnodeListener, ZnodeWatch } from "./watches.js";
import type { Connection } from "./wire/connection.js";
import { childrenIn, type DataReply, exists, getData, remove } from "./wire/requests.js";
import { readZnodeName, showsOrder } from "./zookeeper-entry.js";

export class QueueReader {
  readonly #layout: Layout;
  readonly #clock: ServerClock;
  readonly #known: KnownQueues;

  constructor(layout: Layout, clock: ServerClock, known: KnownQueues) {
    this.#layout = layout;
    this.#clock = clock;
    this.#known = known;
  }

  /** The queue as the server of the connection has it; an empty one where it has none. */
  async read(connection: Connection, lock: LockId, look: "plain" | "texts"): Promise<Listing> {
    const queue = this.#layout.queue(lock);
    const listed = await connection.send(childrenIn(queue));
    this.#known.saw(queue, listed.stat);
    const moment = new Zxid(listed.zxid);
    const plain = await entriesOf(connection, queue, listed.names);
    const entries = look === "plain" ? plain : await readTexts(connection, queue, plain);
    if (lock.space !== "once") return { moment, entries, mark: null };
    // An entry that has left since may have left a mark, which is not among the names.
    const hasLeft = entries.length < listed.names.filter(readZnodeName).length;
    const { names } = hasLeft ? await connection.send(childrenIn(queue)) : listed;
    return { moment, entries, mark: await this.#readMark(connection, queue, names) };
  }

  /** The same listing, with the text and the token of its first entry, unless that has left. */
  async withFirstText(connection: Connection, lock: LockId, listing: Listing): Promise<Listing> {
    const [first, ...others] = listing.entries;
    const queue = this.#layout.queue(lock);
    const [read] = first ? await readTexts(connection, queue, [first]) : [];
    return read ? { ...listing, entries: [read, ...others] } : listing;
  }

  /**
   * The mark that has not expired; null if there is none. Expired marks are removed: no
   * other mark ever has such a path.
   */
  async #readMark(
    connection: Connection,
    queue: string,
    names: readonly string[],
  ): Promise<Mark | null> {
    const paths = names
      .filter((name) => this.#layout.isMark(name))
      .map((name) => `${queue}/${name}`);
    const replies = await Promise.all(
      paths.map((path) => connection.send(getData(path)).catch(nullIfAbsent)),
    );
    let counting: Mark | null = null;
    for (const [index, path] of paths.entries()) {
      const reply = replies[index];
      const mark = reply && new Mark(path, reply);
      if (!mark) continue;
      if (mark.endsMs > this.#clock.nowMs()) counting = mark;
      else if (this.#clock.isKnown) connection.send(remove(path)).catch(() => {});
    }
    return counting;
  }
}

/** An entry that has left since is not listed. */
async function readTexts(
  connection: Connection,
  queue: string,
  entries: readonly Entry[],
): Promise<Entry[]> {
  const replies = await Promise.all(
    entries.map(({ id }) => connection.send(getData(`${queue}/${id}`)).catch(nullIfAbsent)),
  );
  return entries.flatMap((entry, index) => {
    const reply = replies[index];
    return reply ? [detailed(entry, reply)] : [];
  });
}

/** The queue with the transaction that made an entry, which is its only child. */
export function onlyEntry({ id, token, claim }: OwnEntry): Listing {
  const { mode, weight, limit } = claim;
  const entry = { id, mode, weight, limit, token, session: "", text: null };
  return { moment: new Zxid(token), entries: [entry], mark: null };
}

/**
 * The entries in the order in which they were made. Their names show it, unless the counter of the
 * queue has come to its end. The transactions that made them show it always, but have to be asked
 * for: an entry that has left since is not listed then.
 */
async function entriesOf(
  connection: Connection,
  queue: string,
  names: readonly string[],
): Promise<Entry[]> {
  const found = names.flatMap((id) => {
    const name = readZnodeName(id);
    return name ? [{ id, name }] : [];
  });
  found.sort((a, b) => a.name.sequence - b.name.sequence);
  const entries = found.map(({ id, name: { mode, weight, limit } }): Entry => {
    return { id, mode, weight, limit, token: 0n, session: "", text: null };
  });
  if (found.every(({ name }) => showsOrder(name.sequence))) return entries;
  const replies = await Promise.all(
    entries.map(({ id }) => connection.send(exists(`${queue}/${id}`))),
  );
  const made = entries.flatMap((entry, index) => {
    const stat = replies[index]?.stat;
    return stat ? [{ ...entry, token: stat.czxid }] : [];
  });
  return made.sort((a, b) => (a.token < b.token ? -1 : 1));
}

function detailed(entry: Entry, { data, stat }: DataReply): Entry {
  const session = stat.ephemeralOwner.toString(16);
  return { ...entry, token: stat.czxid, session, text: data.length > 0 ? data.toString() : null };
}

/** The watches on queues that waiters of this process stand in. */

export interface WatchTools {
  readonly session: WatchingSession;
  readonly layout: Layout;
  readonly reader: QueueReader;
  readonly timers: Timers;
}

type Listener = (change: QueueChange) => void;

export class QueueWatches {
  readonly #tools: WatchTools;

  constructor(tools: WatchTools) {
    this.#tools = tools;
  }

  watchEntry(
    lock: LockId,
    { id, orWritten }: Extract<Obstacle, { readonly type: "entry" }>,
    listing: Listing,
    listener: Listener,
  ): QueueWatch {
    const { number } = zxidOf(listing.moment);
    const changed = (): void => listener({ type: "changed", moment: null });
    const watch = this.#watch(lock, id, listing, {
      onData: ({ stat }) => {
        if (orWritten && stat.mzxid > number) changed();
      },
      onGone: changed,
      onBroken: () => listener({ type: "broken" }),
    });
    return { close: () => watch.close(), list: (limitMs) => this.#list(lock, [watch], limitMs) };
  }

  /**
   * Watches each holder: only their leaving lets the waiter behind them hold. No event tells when
   * it happened, but each tells of one znode, so the listing without those that left is true.
   */
  watchLeaving(lock: LockId, listing: Listing, listener: Listener): QueueWatch {
    const gone = new Set<string>();
    const onGone = (id: string): void => {
      gone.add(id);
      const entries = listing.entries.filter((entry) => !gone.has(entry.id));
      const moment = zxidOf(listing.moment).later;
      listener({ type: "left", listing: { moment, entries, mark: null }, moment: null });
    };
    const holders = listing.entries.slice(0, holderCount(listing.entries));
    const watches = holders.map(({ id }) =>
      this.#watch(lock, id, listing, {
        onData: () => {},
        onGone: () => onGone(id),
        onBroken: () => listener({ type: "broken" }),
      }),
    );
    return {
      close: () => {
        for (const watch of watches) watch.close();
      },
      list: (limitMs) => this.#list(lock, watches, limitMs),
    };
  }

  #watch(lock: LockId, id: string, { moment }: Listing, listener: ZnodeListener): ZnodeWatch {
    const { session, layout, timers } = this.#tools;
    const path = `${layout.queue(lock)}/${id}`;
    return new ZnodeWatch(path, session, timers, listener, zxidOf(moment).number);
  }

  /** The server that told the change has it. Another one is brought up to date first. */
  async #list(lock: LockId, watches: readonly ZnodeWatch[], limitMs: number): Promise<Listing> {
    const { session, reader } = this.#tools;
    const isSame = watches.every(({ connection }) => connection?.isOpen);
    const read = isSame ? session.use.bind(session) : session.useLatest.bind(session);
    return read((connection) => reader.read(connection, lock, "plain"), limitMs);
  }
}
