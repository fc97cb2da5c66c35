import { keyOf } from "../../rules/name.js";
import type { Listing, LockId, Obstacle, QueueChange, QueueWatch } from "../sequencer/sequencer.js";
import { LeavingWatch, type WatchTools } from "./leaving-watch.js";
import { Revision, revisionOf } from "./revision.js";

/** The watches on queues that waiters of this process stand in. */
export class QueueWatches {
  readonly #tools: WatchTools;
  readonly #leaving = new Map<string, LeavingWatch>();

  constructor(tools: WatchTools) {
    this.#tools = tools;
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
    const since = revisionOf(listing.moment);
    const watch: LeavingWatch = new LeavingWatch(lock, since, this.#tools, () => {
      // A watch may end twice, and another one may have its place by then.
      if (this.#leaving.get(key) === watch) this.#leaving.delete(key);
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
    const { watches, layout, reader } = this.#tools;
    let told = revisionOf(listing.moment);
    const tell = (revision: bigint | string): void => {
      told = BigInt(revision);
      listener({ type: "changed", moment: new Revision(told) });
    };
    const target = {
      key: layout.entry(lock, id),
      since: told,
      // A listing shows earlier changes, and does not take as long.
      isReplayed: false,
      prev_kv: false,
      filters: orWritten ? [] : ["Noput" as const],
    };
    const { close } = watches.open(target, false, {
      onEvents: (events) => tell(events.at(-1)?.kv.mod_revision ?? told),
      onBehind: tell,
      onBroken: () => listener({ type: "broken" }),
    });
    return { close, list: (limitMs) => reader.listSince(lock, told, limitMs) };
  }

  close(): void {
    for (const watch of [...this.#leaving.values()]) watch.end();
  }
}
