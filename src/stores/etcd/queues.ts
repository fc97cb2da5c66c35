/** Reads the queues of locks, and watches those that waiters of this process are in. */

import type {
  Listing,
  LockId,
  Obstacle,
  QueueChange,
  QueueWatch,
  Watch,
} from "../../families/session/sequencer.js";
import { keyOf } from "../../rules/name.js";
import type { Timer, Timers } from "../../time/timers.js";
import type { EtcdCalls } from "./calls.js";
import { type Layout, Revision, revisionOf } from "./layout.js";
import type { EtcdWatches } from "./watches.js";

interface QueueTools {
  readonly calls: EtcdCalls;
  readonly layout: Layout;
  readonly watches: EtcdWatches;
  readonly timers: Timers;
}

export class Queues {
  readonly #tools: QueueTools;
  readonly #leaving = new Map<string, LeavingWatch>();

  constructor(tools: QueueTools) {
    this.#tools = tools;
  }

  /** The queue as it is now: the member that answers asks the leader. */
  async list(lock: LockId, look: "plain" | "texts", limitMs: number): Promise<Listing> {
    const { calls, layout } = this.#tools;
    const { header, kvs } = await calls.range(layout.queue(lock, look), limitMs);
    return layout.listing(lock, header, kvs);
  }

  /** Watches all entries that leave. Takes over a watch on the same queue that is still open. */
  watchLeaving(
    lock: LockId,
    listing: Listing,
    listener: (change: QueueChange) => void,
  ): QueueWatch {
    const key = keyOf(lock.space, lock.name);
    const open = this.#leaving.get(key);
    if (open?.covers(listing)) return open.use(listing, listener);
    open?.end();
    const watch: LeavingWatch = new LeavingWatch(lock, revisionOf(listing.moment), this.#tools, {
      list: (revision, limitMs) => this.#listSince(lock, revision, limitMs),
      onEnd: () => {
        // A watch may end twice, and another one may have replaced it by then.
        if (this.#leaving.get(key) === watch) this.#leaving.delete(key);
      },
    });
    this.#leaving.set(key, watch);
    return watch.use(listing, listener);
  }

  watchEntry(
    lock: LockId,
    { id, orWritten }: Extract<Obstacle, { readonly type: "entry" }>,
    listing: Listing,
    listener: (change: QueueChange) => void,
  ): QueueWatch {
    const { watches, layout } = this.#tools;
    let knownUntil = revisionOf(listing.moment);
    const report = (revision: bigint): void => {
      knownUntil = revision;
      listener({ type: "changed", moment: new Revision(revision) });
    };
    const target = {
      key: layout.entry(lock, id),
      since: knownUntil,
      // A listing shows earlier changes, and sooner.
      isReplayed: false,
      prevKv: false,
      filters: orWritten ? [] : ["Noput" as const],
    };
    const { close } = watches.open(target, {
      onEvents: (events) => report(events.at(-1)?.kv.modRevision ?? knownUntil),
      onBehind: report,
      onBroken: () => listener({ type: "broken" }),
    });
    return { close, list: (limitMs) => this.#listSince(lock, knownUntil, limitMs) };
  }

  close(): void {
    for (const watch of [...this.#leaving.values()]) watch.end();
  }

  /**
   * The queue at `revision` or later, without texts. The member that reported the revision has it,
   * and answers without asking the leader.
   */
  async #listSince(lock: LockId, revision: bigint, limitMs: number): Promise<Listing> {
    const { calls, layout } = this.#tools;
    const request = { ...layout.queue(lock, "plain"), serializable: true };
    const { header, kvs } = await calls.range(request, limitMs);
    if (header.revision < revision) return this.list(lock, "plain", limitMs);
    return layout.listing(lock, header, kvs);
  }
}

interface LeavingWatchOwner {
  /** Lists the queue at `revision` or later. */
  list(revision: bigint, limitMs: number): Promise<Listing>;
  onEnd(): void;
}

interface User {
  readonly listing: Listing;
  readonly listener: (change: QueueChange) => void;
  /** The last revision that the listener knows of. */
  knownUntil: bigint;
}

const LINGER_MS = 250;
/** Deletions reported without a user: the end of the process's own lease, and one more. */
const MAX_UNWANTED = 2;

/**
 * A watch on all entries that leave one queue.
 *
 * etcd reports deletions in the order of their revisions, and those of one revision together. So
 * the listing that the watch began with, less the entries that have left since, is the queue up to
 * its newest entries, without a read. Two processes that take turns wait again and again for each
 * other: the watch stays open for a moment after its user closed it, and serves the next one. It
 * also remembers the deletions that it reports before the listing of its next user has arrived. It
 * ends early if it reports more than its process needs.
 *
 * The watch starts at the present, because etcd would be slow to report what happened before. If
 * keys were written between the listing and the start, entries may have left unseen. Each change
 * then makes its user list the queue, until a user comes with a listing from after the start.
 */
class LeavingWatch {
  readonly #timers: Timers;
  readonly #list: LeavingWatchOwner["list"];
  readonly #handle: Watch;
  readonly #onEnd: () => void;
  /** The entries that left after `#knownSince`, with the revisions of their deletions. */
  readonly #departed = new Map<string, bigint>();
  #knownSince: bigint;
  /** The revision after which the watch reports all deletions. */
  #startedAt: bigint;
  #user: User | null = null;
  #unwanted = 0;
  #lingering: Timer | undefined;

  constructor(
    lock: LockId,
    since: bigint,
    { watches, layout, timers }: QueueTools,
    { list, onEnd }: LeavingWatchOwner,
  ) {
    this.#timers = timers;
    this.#list = list;
    this.#onEnd = onEnd;
    this.#knownSince = since;
    this.#startedAt = since;
    const { key, rangeEnd } = layout.queue(lock);
    const range = { key, rangeEnd, prevKv: false, filters: ["Noput" as const] };
    this.#handle = watches.open(
      { ...range, since, isReplayed: false },
      {
        onEvents: (events) => this.#onDeletions(layout.revisionsIn(lock, events)),
        onBehind: (at) => this.#onBehind(at),
        onBroken: () => this.#onBroken(),
      },
    );
  }

  /** Whether the watch knows of all entries that left after this listing. */
  covers(listing: Listing): boolean {
    const revision = revisionOf(listing.moment);
    return revision >= this.#knownSince && revision >= this.#startedAt;
  }

  /** Serves one user at a time. */
  use(listing: Listing, listener: (change: QueueChange) => void): QueueWatch {
    this.#lingering?.cancel();
    this.#unwanted = 0;
    const user = { listing, listener, knownUntil: revisionOf(listing.moment) };
    this.#user = user;
    this.#knownSince = user.knownUntil;
    for (const [id, revision] of this.#departed) {
      if (revision <= user.knownUntil) this.#departed.delete(id);
    }
    // Events overtook the listing.
    if (this.#departed.size > 0) this.#timers.soon(() => this.#report(user));
    return {
      close: () => {
        if (this.#user === user) this.#linger();
      },
      list: (limitMs) => this.#list(user.knownUntil, limitMs),
    };
  }

  end(): void {
    this.#lingering?.cancel();
    this.#user = null;
    this.#handle.close();
    this.#onEnd();
  }

  #linger(): void {
    this.#user = null;
    this.#lingering = this.#timers.after(LINGER_MS, () => this.end());
  }

  /** Ignores deletions of keys of longer names, which are in other queues. */
  #onDeletions(revisions: ReadonlyMap<string, bigint>): void {
    if (revisions.size === 0) return;
    for (const [id, revision] of revisions) {
      // The id of an entry that left before the listing may belong to another entry in it.
      if (revision <= this.#knownSince) continue;
      // Moves an id that left before to the end: the last one has the greatest revision.
      this.#departed.delete(id);
      this.#departed.set(id, revision);
    }
    if (this.#user) return this.#report(this.#user);
    this.#unwanted += 1;
    if (this.#unwanted > MAX_UNWANTED) this.end();
  }

  #report(user: User): void {
    const last = [...this.#departed.values()].at(-1);
    if (this.#user !== user || last === undefined) return;
    const { listing, listener } = user;
    user.knownUntil = last;
    if (this.#isTooOld(user)) return listener({ type: "changed", moment: new Revision(last) });
    const entries = listing.entries.filter(({ id }) => !this.#departed.has(id));
    const moment = new Revision(last);
    listener({ type: "left", listing: { moment, entries, mark: null }, moment });
  }

  /** Whether entries may have left between the listing and the start of the watch. */
  #isTooOld({ listing }: User): boolean {
    return revisionOf(listing.moment) < this.#startedAt;
  }

  #onBehind(at: bigint): void {
    this.#startedAt = at;
    if (!this.#user || !this.#isTooOld(this.#user)) return;
    this.#user.knownUntil = at;
    this.#user.listener({ type: "changed", moment: new Revision(at) });
  }

  #onBroken(): void {
    const user = this.#user;
    this.end();
    user?.listener({ type: "broken" });
  }
}
