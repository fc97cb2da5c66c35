/**
 * Sends the writes to queues that are asked for in one turn of the event loop as one transaction.
 *
 * ZooKeeper needs far less time for a transaction of many writes than for as many requests. All
 * writes of one transaction have the same zxid, so a transaction never has two for one queue: both
 * entries would have the same token. When ZooKeeper refuses one write, it refuses the transaction:
 * no write took effect, and the callers send theirs alone.
 *
 * An entry that is likely to be the only one in its queue is made together with a *stamp*: a write
 * of the queue's data, which is empty and stays so. The answer to the stamp has the number of
 * children that the queue has in that very transaction. When the entry is the only child, no
 * request for the queue is needed.
 */
import type { Port } from "../../time/port.js";
import { isUnknown } from "./failure.js";
import type { KnownQueues } from "./known-queues.js";
import type { Connection } from "./wire/connection.js";
import { type MultiPart, type MultiReply, multi } from "./wire/multi.js";
import { type Created, Operation, type Request, setData, type Timed } from "./wire/requests.js";
import { hasCode } from "./wire/zookeeper-error.js";

/** A write to a queue: the making or the removal of an entry. */
export interface EntryWrite {
  readonly connection: Connection;
  /** The znode that the entry is a child of. */
  readonly queue: string;
  readonly request: Request<Created> | Request<Timed>;
  /** The write was refused together with other ones, and is not joined with any again. */
  readonly isAlone: boolean;
}

export type WriteReply =
  | {
      readonly type: "done";
      /** The transaction. */
      readonly zxid: bigint;
      /** Of an entry that was made; null after a removal. */
      readonly path: string | null;
      /** The time of the transaction by the clock of the leader; null where it was not told. */
      readonly atMs: number | null;
    }
  /** Another write was in the way, or the stamp, and this one had no effect. */
  | { readonly type: "refused" };

/** The two parts of a call settle by themselves, in any order. */
export interface SentWrite<T> {
  readonly written: Promise<WriteReply>;
  /** The outcome of the requests behind the write; null where the entry is the only child. */
  readonly behind: Promise<T | null>;
}

interface Pending extends EntryWrite {
  /** Null where no stamp is sent. */
  readonly stamp: MultiPart | null;
  /** Sends the requests behind the write. */
  follow(): void;
  /** The requests behind the write are not needed. */
  skip(): void;
  resolve(written: WriteReply): void;
  reject(error: unknown): void;
}

const NO_BYTES = new Uint8Array(0);
/** Two paths and a text have up to 2 kB and 4 kB, a request 1 MB. */
const MOST_JOINED = 120;

export class EntryBatch {
  readonly #port: Port;
  readonly #known: KnownQueues;
  #pending: Pending[] = [];

  constructor(port: Port, known: KnownQueues) {
    this.#port = port;
    this.#known = known;
  }

  /** `follow` sends the requests that travel behind the write. */
  send<T>(write: EntryWrite, follow: () => Promise<T>): SentWrite<T> {
    const stamp = this.#mayStamp(write) ? setData(write.queue, NO_BYTES) : null;
    let onFollow = (): void => {};
    let skip = (): void => {};
    const behind = new Promise<T | null>((resolve) => {
      onFollow = () => resolve(follow());
      skip = () => resolve(null);
    });
    const written = new Promise<WriteReply>((resolve, reject) => {
      this.#pending.push({ ...write, stamp, follow: onFollow, skip, resolve, reject });
      if (this.#pending.length === 1) this.#port.timers.soon(() => this.flush());
    });
    return { written, behind };
  }

  /** Sends what was asked for in this turn, in the order of the calls. */
  flush(): void {
    const pending = this.#pending;
    this.#pending = [];
    let joined: Pending[] = [];
    const queues = new Set<string>();
    const finish = (): void => {
      const [first] = joined;
      if (first && joined.length === 1 && !first.stamp) this.#sendPlain(first);
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

  #mayStamp({ isAlone, request, queue }: EntryWrite): boolean {
    return !isAlone && request.operation !== Operation.delete && this.#known.isQuiet(queue);
  }

  /** A removal is of an entry that was there. */
  #mayJoin({ isAlone, request, queue }: EntryWrite): boolean {
    return !isAlone && (request.operation === Operation.delete || this.#known.isThere(queue));
  }

  #sendPlain({ connection, request, follow, resolve, reject }: Pending): void {
    const replied = connection.send<Created | Timed>(request);
    follow();
    replied.then((reply) => {
      const made = "path" in reply ? reply : null;
      const atMs = made?.stat.createdMs ?? null;
      resolve({ type: "done", zxid: reply.zxid, path: made?.path ?? null, atMs });
    }, reject);
  }

  #sendJoined(connection: Connection, joined: readonly Pending[]): void {
    const parts = joined.flatMap(({ request, stamp }) => (stamp ? [request, stamp] : [request]));
    const replied = connection.send(multi(parts));
    for (const { stamp, follow } of joined) if (!stamp) follow();
    replied.then(
      (reply) => this.#onReply(joined, reply),
      (error: unknown) => {
        for (const { skip, resolve, reject } of joined) {
          skip();
          // rule: lost-transaction-is-unknown
          if (isUnknown(error)) reject(error);
          else resolve({ type: "refused" });
        }
      },
    );
  }

  #onReply(joined: readonly Pending[], reply: MultiReply): void {
    let index = 0;
    for (const { queue, stamp, follow, skip, resolve } of joined) {
      const at = index;
      index += stamp ? 2 : 1;
      if (reply.type === "refused") {
        const isStamp = stamp && reply.at === at + 1;
        if (isStamp && hasCode(reply.error, "no_auth")) this.#known.sawReadOnly(queue);
        skip();
        resolve({ type: "refused" });
        continue;
      }
      const { zxid } = reply;
      const [written, stamped] = reply.replies.slice(at, index);
      const path = written?.path ?? null;
      const queueStat = stamped?.stat ?? null;
      const atMs = written?.stat?.createdMs ?? queueStat?.modifiedMs ?? null;
      resolve({ type: "done", zxid, path, atMs });
      if (!queueStat) continue;
      this.#known.saw(queue, queueStat);
      // rule: only-entry-holds-without-a-look
      if (queueStat.childCount === 1) skip();
      else follow();
    }
  }
}
