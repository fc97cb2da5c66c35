/**
 * Sends the writes to queues that are asked for in one turn of the event loop as one transaction.
 *
 * ZooKeeper needs far less time for a transaction of many writes than for as many requests. All
 * writes of one transaction have the same zxid, so a transaction never has two for one queue: both
 * entries would have the same token. When ZooKeeper refuses one write, it refuses the transaction:
 * no write took effect, and the callers send theirs separately.
 *
 * An entry that is likely to be the only one in its queue is made together with a *stamp*: a write
 * of the queue's data, which is empty and stays so. The stamp names the version of the empty data:
 * ZooKeeper refuses it where another program has written data since. The answer to the stamp has
 * the number of children that the queue has in that very transaction. When the entry is the only
 * child, no request for the queue is needed.
 */

import type { Clock } from "../../time/clock.js";
import type { Runtime } from "../../time/runtime.js";
import { isUnknown } from "./errors.js";
import type { Connection } from "./wire/connection.js";
import type { Stat } from "./wire/jute.js";
import {
  ANY_VERSION,
  type Created,
  type MultiPart,
  type MultiReply,
  multi,
  Operation,
  type Request,
  type StatReply,
  setData,
  type Timed,
} from "./wire/requests.js";

/** A write to a queue: the making or the removal of an entry. */
export interface EntryRequest {
  readonly connection: Connection;
  /** The znode that the entry is a child of. */
  readonly queue: string;
  readonly request: Request<Created> | Request<Timed>;
  /** The length of the data in the request. */
  readonly dataBytes: number;
  /** The caller needs `atMs`, which no server tells for an entry that joins without a stamp. */
  readonly needsTime: boolean;
  /** The write was refused together with other ones, and is not joined with any again. */
  readonly isSeparate: boolean;
}

export type WriteReply =
  | {
      readonly type: "done";
      /** The transaction: of an entry that was made, its czxid. */
      readonly zxid: bigint;
      /** Of an entry that was made; null after a removal. */
      readonly path: string | null;
      /** The time of the transaction by the clock of the leader; null where it was not told. */
      readonly atMs: number | null;
    }
  /** Another write was in the way, or the stamp, and this one had no effect. */
  | { readonly type: "refused" };

/** The two parts of a call settle by themselves, in any order. */
export interface SentRequest<T> {
  readonly written: Promise<WriteReply>;
  /** The outcome of the requests behind the write; null where the entry is the only child. */
  readonly behind: Promise<T | null>;
}

/** A write that was asked for, and what its caller waits for. */
class PendingWrite<T> implements SentRequest<T> {
  readonly connection: Connection;
  readonly queue: string;
  readonly request: EntryRequest["request"];
  /** Null where no stamp is sent. */
  readonly stamp: Request<StatReply> | null;
  readonly mayJoin: boolean;
  /** About as many as the write has in a request. */
  readonly bytes: number;
  readonly written: Promise<WriteReply>;
  readonly behind: Promise<T | null>;
  resolve: (written: WriteReply) => void = () => {};
  reject: (error: unknown) => void = () => {};
  readonly #follow: () => Promise<T>;
  #onBehind: (outcome: Promise<T> | null) => void = () => {};

  constructor(
    write: EntryRequest,
    guess: ReturnType<KnownQueues["guess"]>,
    follow: () => Promise<T>,
  ) {
    const { connection, queue, request, dataBytes, needsTime, isSeparate } = write;
    this.connection = connection;
    this.queue = queue;
    this.request = request;
    // A removal is of an entry that was there.
    const isRemoval = request.operation === Operation.delete;
    const version = isSeparate || isRemoval ? null : (guess?.quietVersion ?? null);
    this.stamp = version === null ? null : setData(queue, NO_BYTES, version);
    const isThere = isRemoval || guess !== null;
    this.mayJoin = !isSeparate && isThere && (!needsTime || this.stamp !== null);
    this.bytes = request.path.length + queue.length + dataBytes;
    this.#follow = follow;
    this.written = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    this.behind = new Promise((resolve) => {
      this.#onBehind = resolve;
    });
  }

  /** Sends the requests behind the write. */
  follow(): void {
    this.#onBehind(this.#follow());
  }

  /** The requests behind the write are not needed. */
  skip(): void {
    this.#onBehind(null);
  }

  refuse(): void {
    this.skip();
    this.resolve({ type: "refused" });
  }
}

/** A write, whatever its caller sends behind it. */
type Pending = Omit<PendingWrite<unknown>, "written" | "behind">;

const NO_BYTES = new Uint8Array(0);
const MAX_JOINED = 120;
/** A server closes the connection of a request that has more than 1 MB. */
const MAX_JOINED_BYTES = 256 * 1024;

export class EntryBatch {
  readonly #runtime: Runtime;
  readonly #known: KnownQueues;
  #pending: Pending[] = [];

  constructor(runtime: Runtime, known: KnownQueues) {
    this.#runtime = runtime;
    this.#known = known;
  }

  /** `follow` sends the requests that travel behind the write. */
  send<T>(write: EntryRequest, follow: () => Promise<T>): SentRequest<T> {
    const pending = new PendingWrite(write, this.#known.guess(write.queue), follow);
    if (pending.stamp) this.#known.onStamp(write.queue);
    this.#pending.push(pending);
    if (this.#pending.length === 1) this.#runtime.timers.soon(() => this.flush());
    return pending;
  }

  /** Sends what was asked for in this turn, in the order of the calls. */
  flush(): void {
    const pending = this.#pending;
    this.#pending = [];
    let joined: Pending[] = [];
    let bytes = 0;
    const queues = new Set<string>();
    for (const one of pending) {
      const [first] = joined;
      const isFull = joined.length === MAX_JOINED || bytes + one.bytes > MAX_JOINED_BYTES;
      const isTaken = queues.has(one.queue);
      if (first && (isFull || isTaken || !first.mayJoin || !mayFollow(first, one))) {
        this.#send(joined);
        joined = [];
        bytes = 0;
        queues.clear();
      }
      joined.push(one);
      bytes += one.bytes;
      queues.add(one.queue);
    }
    this.#send(joined);
  }

  #send(joined: readonly Pending[]): void {
    const [first] = joined;
    if (first && joined.length === 1 && !first.stamp) sendPlain(first);
    else if (first) this.#sendJoined(first.connection, joined);
  }

  #sendJoined(connection: Connection, joined: readonly Pending[]): void {
    const parts: MultiPart[] = [];
    for (const { request, stamp } of joined) {
      parts.push(request);
      if (stamp) parts.push(stamp);
    }
    const replied = connection.send(multi(parts));
    for (const one of joined) if (!one.stamp) one.follow();
    replied.then(
      (reply) => this.#onReply(joined, reply),
      (error: unknown) => {
        for (const one of joined) {
          // rule: lost-transaction-is-unknown
          if (isUnknown(error)) one.reject(error);
          else one.refuse();
        }
      },
    );
  }

  #onReply(joined: readonly Pending[], reply: MultiReply): void {
    let next = 0;
    for (const one of joined) {
      const at = next;
      next += one.stamp ? 2 : 1;
      if (reply.type === "refused") {
        if (one.stamp && reply.at === at + 1) this.#known.sawRefusal(one.queue);
        one.refuse();
        continue;
      }
      const written = reply.replies[at];
      const queueStat = one.stamp ? (reply.replies[at + 1]?.stat ?? null) : null;
      const atMs = written?.stat?.createdMs ?? queueStat?.modifiedMs ?? null;
      const zxid = written?.stat?.czxid ?? reply.zxid;
      one.resolve({ type: "done", zxid, path: written?.path ?? null, atMs });
      if (!queueStat) continue;
      this.#known.saw(one.queue, queueStat);
      // rule: only-entry-holds-without-a-look
      if (queueStat.childCount === 1) one.skip();
      else one.follow();
    }
  }
}

function mayFollow(first: Pending, next: Pending): boolean {
  return next.mayJoin && next.connection === first.connection;
}

function sendPlain(write: Pending): void {
  const replied = write.connection.send<Created | Timed>(write.request);
  write.follow();
  replied.then((reply) => {
    const made = "path" in reply ? reply : null;
    const atMs = made?.stat.createdMs ?? null;
    const zxid = made?.stat.czxid ?? reply.zxid;
    write.resolve({ type: "done", zxid, path: made?.path ?? null, atMs });
  }, write.reject);
}

/**
 * The queues that were there a moment ago, as the last answer about each showed them.
 *
 * This is a guess: a queue may have gone since, or other entries may have come. It decides only how
 * an entry is asked for, and never whether the entry holds.
 */

interface KnownQueue {
  readonly seenMs: number;
  /** The version of its data, where it had one entry at most, and no data; null otherwise. */
  readonly quietVersion: number | null;
  /** A stamp was refused: this client may not write the data, or other clients write it, too. */
  readonly refusesStamps: boolean;
}

/** ZooKeeper looks for empty queues once a minute, and removes them. */
const KNOWN_MS = 60_000;
const MAX_KNOWN = 10_000;

export class KnownQueues {
  readonly #clock: Clock;
  /** The queue that was seen longest ago comes first. */
  readonly #queues = new Map<string, KnownQueue>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** An answer showed the queue; null: it showed that there is none. */
  saw(queue: string, stat: Pick<Stat, "childCount" | "dataBytes" | "version"> | null): void {
    const refusesStamps = this.#queues.get(queue)?.refusesStamps ?? false;
    this.#queues.delete(queue);
    if (!stat) return;
    // The version is a signed number of 32 bits that wraps: one of its values stands for any.
    const isNamed = stat.version !== ANY_VERSION;
    const isQuiet = stat.childCount <= 1 && stat.dataBytes === 0 && isNamed;
    const quietVersion = isQuiet ? stat.version : null;
    this.#queues.set(queue, { seenMs: this.#clock.nowMs(), quietVersion, refusesStamps });
    const [oldest] = this.#queues.size > MAX_KNOWN ? this.#queues.keys() : [];
    if (oldest !== undefined) this.#queues.delete(oldest);
  }

  /**
   * ZooKeeper refused to write the data of the queue, and will again: for want of a right, or
   * because the stamps of other clients change its version.
   */
  sawRefusal(queue: string): void {
    const known = this.#queues.get(queue);
    if (known) this.#queues.set(queue, { ...known, refusesStamps: true });
  }

  /**
   * This client is about to write the data of the queue. The version changes, and the next answer
   * about the queue shows it.
   */
  onStamp(queue: string): void {
    const known = this.#queues.get(queue);
    if (known) this.#queues.set(queue, { ...known, quietVersion: null });
  }

  /**
   * `quietVersion`: the next entry is likely to be the only one, and may write the queue's empty
   * data, which has this version. Null for the whole: the queue may be missing.
   */
  guess(queue: string): { readonly quietVersion: number | null } | null {
    const known = this.#queues.get(queue);
    if (!known || this.#clock.nowMs() - known.seenMs >= KNOWN_MS) return null;
    return { quietVersion: known.refusesStamps ? null : known.quietVersion };
  }
}
