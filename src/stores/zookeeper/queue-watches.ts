/** The watches on queues that waiters of this process stand in. */

import type {
  Listing,
  LockId,
  Obstacle,
  QueueChange,
  QueueWatch,
} from "../../families/session/sequencer.js";
import { holderCount } from "../../families/session/standing.js";
import type { Timers } from "../../time/timers.js";
import type { Layout } from "./layout.js";
import type { QueueReader } from "./queue-reader.js";
import type { WatchingSession } from "./watching-session.js";
import { type ZnodeListener, ZnodeWatch } from "./znode-watch.js";
import { zxidOf } from "./zxid.js";

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
