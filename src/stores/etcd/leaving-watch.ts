/**
 * A watch on all entries that leave one queue.
 *
 * etcd tells of deletions in the order of their revisions, and of those of one revision together.
 * So the listing that the watch began with, less the entries that have left since, is the queue up
 * to its newest entries, without a read. Two processes that take turns wait again and again for
 * each other: the watch stays open for a moment after its user closed it, and serves the next one.
 * It also remembers the deletions that it tells before the listing of its next user has arrived. It
 * ends early when it tells more than its process needs.
 *
 * The watch starts at the present: etcd would be slow to tell what happened before. When keys were
 * written between the listing and the start, entries may have left unseen, so each change is a
 * reason to list the queue, until a user comes with a listing from after the start.
 */
import type { Timer, Timers } from "../../time/timers.js";
import type { Listing, LockId, QueueChange, QueueWatch, Watch } from "../sequencer/sequencer.js";
import type { EtcdWatches } from "./etcd-watches.js";
import type { Layout } from "./layout.js";
import type { QueueReader } from "./queue-reader.js";
import { Revision, revisionOf } from "./revision.js";

export interface WatchTools {
  readonly watches: EtcdWatches;
  readonly layout: Layout;
  readonly reader: QueueReader;
  readonly timers: Timers;
}

interface User {
  readonly listing: Listing;
  readonly listener: (change: QueueChange) => void;
  /** The last revision that the listener knows of. */
  told: bigint;
}

const LINGER_MS = 250;
/** Deletions told without a user: the end of the own lease, and one more. */
const MOST_UNWANTED = 2;

export class LeavingWatch {
  readonly #lock: LockId;
  readonly #tools: WatchTools;
  readonly #handle: Watch;
  readonly #onEnd: () => void;
  /** The entries that left after `#knownSince`, with the revisions of their deletions. */
  readonly #gone = new Map<string, bigint>();
  #knownSince: bigint;
  /** The revision after which the watch tells all deletions. */
  #startedAt: bigint;
  #user: User | null = null;
  #unwanted = 0;
  #lingering: Timer | undefined;

  constructor(lock: LockId, since: bigint, tools: WatchTools, onEnd: () => void) {
    const { watches, layout } = tools;
    this.#lock = lock;
    this.#tools = tools;
    this.#onEnd = onEnd;
    this.#knownSince = since;
    this.#startedAt = since;
    const { key, range_end } = layout.queue(lock);
    const range = { key, range_end, prev_kv: false, filters: ["Noput" as const] };
    const target = { ...range, since, isReplayed: false };
    this.#handle = watches.open(target, false, {
      onEvents: (events) => this.#onDeletions(layout.revisionsIn(lock, events)),
      onBehind: (at) => this.#onBehind(at),
      onBroken: () => this.#onBroken(),
    });
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
    const user = { listing, listener, told: revisionOf(listing.moment) };
    this.#user = user;
    this.#knownSince = user.told;
    for (const [id, revision] of this.#gone) {
      if (revision <= user.told) this.#gone.delete(id);
    }
    // Events overtook the listing.
    if (this.#gone.size > 0) this.#tools.timers.soon(() => this.#tell(user));
    return {
      close: () => {
        if (this.#user === user) this.#linger();
      },
      list: (limitMs) => this.#tools.reader.listSince(this.#lock, user.told, limitMs),
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
    this.#lingering = this.#tools.timers.after(LINGER_MS, () => this.end());
  }

  /** Nothing where only keys of longer names were deleted: these are in other queues. */
  #onDeletions(revisions: ReadonlyMap<string, bigint>): void {
    if (revisions.size === 0) return;
    for (const [id, revision] of revisions) {
      // The id of an entry that left before the listing may belong to another entry in it.
      if (revision <= this.#knownSince) continue;
      // An id that left before goes to the end: the last one has the greatest revision.
      this.#gone.delete(id);
      this.#gone.set(id, revision);
    }
    if (this.#user) return this.#tell(this.#user);
    this.#unwanted += 1;
    if (this.#unwanted > MOST_UNWANTED) this.end();
  }

  #tell(user: User): void {
    const last = [...this.#gone.values()].at(-1);
    if (this.#user !== user || last === undefined) return;
    const { listing, listener } = user;
    user.told = last;
    if (this.#isTooOld(user)) return listener({ type: "changed", moment: new Revision(last) });
    const entries = listing.entries.filter(({ id }) => !this.#gone.has(id));
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
    this.#user.told = at;
    this.#user.listener({ type: "changed", moment: new Revision(at) });
  }

  #onBroken(): void {
    const user = this.#user;
    this.end();
    user?.listener({ type: "broken" });
  }
}
