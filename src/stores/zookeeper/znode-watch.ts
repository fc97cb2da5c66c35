/**
 * A watch on one znode, until the znode is gone. ZooKeeper's watches begin at the present and fire
 * once: each reading of the znode sets the next one, so no change between two is missed.
 *
 * A server that is behind its leader does not have new znodes yet. So the absence of a znode counts
 * only on a server that has applied the transaction at which the znode was there.
 */

import type { Watch } from "../../families/session/sequencer.js";
import type { Timers } from "../../time/timers.js";
import type { WatchingSession } from "./watching-session.js";
import type { Connection } from "./wire/connection.js";
import { type DataReply, getData, type Request, type Timed } from "./wire/requests.js";
import type { WatchEvent, WatchListener } from "./wire/watch-table.js";
import { hasCode } from "./wire/zookeeper-error.js";

export interface ZnodeListener {
  /** The znode as it is, at first and after every change of its data. */
  onData(reply: DataReply): void;
  /** The watch is over. */
  onGone(): void;
  /** The watch is over, and the end of the znode may have been missed. */
  onBroken(): void;
}

const CALL_MS = 1_500;
/** A watch that cannot be set is told as broken after this, so that its listener does not spin. */
const FAILED_MS = 100;

export class ZnodeWatch implements Watch {
  readonly #path: string;
  readonly #session: WatchingSession;
  readonly #timers: Timers;
  readonly #listener: ZnodeListener;
  readonly #sinceZxid: bigint;
  readonly #onEvent = (event: WatchEvent): void => this.#on(event);
  #connection: Connection | null = null;
  #isOver = false;

  /** `sinceZxid`: a transaction at which the znode was there; 0 where none is known. */
  constructor(
    path: string,
    session: WatchingSession,
    timers: Timers,
    listener: ZnodeListener,
    sinceZxid = 0n,
  ) {
    this.#path = path;
    this.#sinceZxid = sinceZxid;
    this.#session = session;
    this.#timers = timers;
    this.#listener = listener;
    void this.#read();
  }

  /** The connection on which the watch was set. */
  get connection(): Connection | null {
    return this.#connection;
  }

  close(): void {
    this.#isOver = true;
    this.#session.unwatch(this.#path, this.#onEvent);
  }

  async #read(): Promise<void> {
    try {
      const look = (connection: Connection): Promise<DataReply | Absence> => {
        this.#connection = connection;
        return connection.send(dataOrAbsence(this.#path, this.#onEvent));
      };
      let reply = await this.#session.use(look, CALL_MS);
      if (this.#isTooOld(reply)) reply = await this.#session.useLatest(look, CALL_MS);
      if (this.#isOver) return this.close();
      if (reply.stat) this.#listener.onData(reply);
      else if (this.#isTooOld(reply)) this.#fail();
      else this.#end().onGone();
    } catch {
      this.#fail();
    }
  }

  #isTooOld({ stat, zxid }: DataReply | Absence): boolean {
    // rule: absence-counts-on-servers-up-to-date
    return !stat && zxid < this.#sinceZxid;
  }

  #fail(): void {
    this.#timers.after(FAILED_MS, () => {
      if (!this.#isOver) this.#end().onBroken();
    });
  }

  #on({ type }: WatchEvent): void {
    if (this.#isOver) return;
    if (type === "deleted") this.#end().onGone();
    else if (type === "lost") this.#end().onBroken();
    else void this.#read();
  }

  #end(): ZnodeListener {
    this.close();
    return this.#listener;
  }
}

/** The server does not have the znode, and has applied all transactions up to `zxid`. */
interface Absence extends Timed {
  readonly stat: null;
}

function dataOrAbsence(path: string, listener: WatchListener): Request<DataReply | Absence> {
  return {
    ...getData(path, listener),
    readError: (error, zxid) => (hasCode(error, "no_node") ? { stat: null, zxid } : undefined),
    watch: { listener, kindBy: ({ stat }) => (stat ? "data" : null) },
  };
}
