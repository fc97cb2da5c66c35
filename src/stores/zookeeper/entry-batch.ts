/**
 * Sends the writes to queues that are asked for in one turn of the event loop as one transaction.
 *
 * ZooKeeper needs far less time for a transaction of many writes than for as many requests. All
 * writes of one transaction have the same zxid, so a transaction never has two for one queue: both
 * entries would have the same token. A single write is sent as it is. When ZooKeeper refuses one
 * write, it refuses the transaction: no write took effect, and the callers send theirs alone.
 */
import type { Port } from "../../time/port.js";
import { isUnknown } from "./failure.js";
import type { Connection } from "./wire/connection.js";
import { type MultiReply, multi, type PartReply } from "./wire/multi.js";
import { type Created, Operation, type Request, type Timed } from "./wire/requests.js";
import { hasCode } from "./wire/zookeeper-error.js";

/** A write to a queue: the making or the removal of an entry. */
export interface EntryRequest {
  readonly connection: Connection;
  /** The znode that the entry is a child of. */
  readonly queue: string;
  readonly request: Request<Created> | Request<Timed>;
  /** The write was refused together with other ones, and is not joined with any again. */
  readonly isAlone: boolean;
}

export type EntryReply =
  | ({ readonly type: "done" } & PartReply)
  /** Another write was in the way, and this one had no effect. */
  | { readonly type: "refused" };

/** The two parts of a call settle by themselves, in any order. */
export interface SentRequest<T> {
  readonly written: Promise<EntryReply>;
  /** The outcome of the requests that travel behind the write. */
  readonly behind: Promise<T>;
}

interface Pending extends EntryRequest {
  onSent(): void;
  resolve(written: EntryReply): void;
  reject(error: unknown): void;
}

/** A path and a text have up to 2 kB and 4 kB, a request 1 MB. */
const MOST_JOINED = 128;
/**
 * ZooKeeper looks for empty queues once a minute, and removes them. One write to a queue that is
 * not there would refuse all writes beside it.
 */
const KNOWN_MS = 60_000;
const MOST_KNOWN = 10_000;

export class EntryBatch {
  readonly #port: Port;
  #pending: Pending[] = [];
  /** The queues that were there, by the time of the last answer that showed it, oldest first. */
  readonly #known = new Map<string, number>();

  constructor(port: Port) {
    this.#port = port;
  }

  /** `follow` sends the requests that travel behind the write. */
  send<T>(write: EntryRequest, follow: () => Promise<T>): SentRequest<T> {
    let onSent = (): void => {};
    const behind = new Promise<T>((resolve) => {
      onSent = () => resolve(follow());
    });
    const written = new Promise<EntryReply>((resolve, reject) => {
      this.#pending.push({ ...write, onSent, resolve, reject });
      if (this.#pending.length === 1) this.#port.timers.soon(() => this.#flush());
    });
    return { written, behind };
  }

  /** In the order of the calls. */
  #flush(): void {
    const pending = this.#pending;
    this.#pending = [];
    let joined: Pending[] = [];
    const queues = new Set<string>();
    const finish = (): void => {
      const [first] = joined;
      if (first && joined.length === 1) this.#sendAlone(first);
      else if (first) this.#sendJoined(first.connection, joined);
      joined = [];
      queues.clear();
    };
    for (const one of pending) {
      const mayJoin = this.#mayJoin(one);
      const isFull = joined.length === MOST_JOINED;
      const isSame = one.connection === joined[0]?.connection;
      // rule: one-write-for-each-queue
      const isTaken = queues.has(one.queue);
      if (!mayJoin || isFull || !isSame || isTaken) finish();
      joined.push(one);
      queues.add(one.queue);
      if (!mayJoin) finish();
    }
    finish();
  }

  /** A removal is of an entry that was there. */
  #mayJoin({ isAlone, request, queue }: EntryRequest): boolean {
    if (isAlone) return false;
    if (request.operation === Operation.delete) return true;
    const seenMs = this.#known.get(queue) ?? Number.NEGATIVE_INFINITY;
    return this.#port.clock.nowMs() - seenMs < KNOWN_MS;
  }

  #sendAlone({ connection, request, queue, onSent, resolve, reject }: Pending): void {
    const replied = connection.send<Created | Timed>(request);
    onSent();
    replied.then(
      (reply) => {
        const made = "path" in reply ? reply : { path: null, stat: null };
        if (made.path !== null) this.#remember(queue);
        resolve({ type: "done", zxid: reply.zxid, path: made.path, stat: made.stat });
      },
      (error: unknown) => {
        if (hasCode(error, "no_node")) this.#known.delete(queue);
        reject(error);
      },
    );
  }

  #sendJoined(connection: Connection, joined: readonly Pending[]): void {
    const replied = connection.send(multi(joined.map(({ request }) => request)));
    for (const { onSent } of joined) onSent();
    replied.then(
      (reply) => {
        for (const [index, one] of joined.entries()) one.resolve(this.#partOf(reply, index, one));
      },
      (error: unknown) => {
        for (const { resolve, reject } of joined) {
          if (isUnknown(error)) reject(error);
          else resolve({ type: "refused" });
        }
      },
    );
  }

  #partOf(reply: MultiReply, index: number, { queue }: EntryRequest): EntryReply {
    const part = reply.type === "done" ? reply.replies[index] : undefined;
    if (!part) return { type: "refused" };
    if (part.path !== null) this.#remember(queue);
    return { type: "done", ...part };
  }

  #remember(queue: string): void {
    this.#known.delete(queue);
    this.#known.set(queue, this.#port.clock.nowMs());
    const [oldest] = this.#known.size > MOST_KNOWN ? this.#known.keys() : [];
    if (oldest !== undefined) this.#known.delete(oldest);
  }
}
