/** Reads queues from ZooKeeper, on any connection. */
import type { Entry, Listing, LockId, OwnEntry } from "../../families/session/sequencer.js";
import type { KnownQueues } from "./known-queues.js";
import type { Layout } from "./layout.js";
import { Mark } from "./mark.js";
import type { ServerClock } from "./server-clock.js";
import type { Connection } from "./wire/connection.js";
import {
  type ChildrenReply,
  type DataReply,
  exists,
  getChildren2,
  getData,
  type Request,
  remove,
} from "./wire/requests.js";
import type { Stat } from "./wire/stat.js";
import { hasCode } from "./wire/zookeeper-error.js";
import { readZnodeName, showsOrder } from "./znode-name.js";
import { Zxid } from "./zxid.js";

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
   * The mark that still counts; null where there is none. Marks whose time is over are removed: no
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

/** The children of a znode; none, and no stat, where it does not exist. */
export function childrenIn(
  path: string,
): Request<Omit<ChildrenReply, "stat"> & { readonly stat: Stat | null }> {
  return {
    ...getChildren2(path),
    readError: (error, zxid) =>
      hasCode(error, "no_node") ? { names: [], stat: null, zxid } : undefined,
  };
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

export function nullIfAbsent(error: unknown): null {
  if (hasCode(error, "no_node")) return null;
  throw error;
}
