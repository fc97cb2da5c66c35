/** The watches of a simulated etcd: each has a range of keys and a first revision. */
import type {
  WatchCreate,
  WatchEvent,
  WatchReply,
  WatchRequest,
} from "../../src/stores/etcd/wire/messages.js";
import { isIn, type KeyHistory } from "./key-history.js";

interface ServerWatch {
  readonly target: WatchCreate;
  readonly send: (reply: WatchReply) => void;
  /** The watch is told new events as they happen. */
  isLive: boolean;
}

/** One stream of a client. */
export class WatchStream {
  readonly watches: Map<bigint, ServerWatch> = new Map();
  readonly send: (reply: WatchReply) => void;

  constructor(send: (reply: WatchReply) => void) {
    this.send = send;
  }
}

export class WatchHub {
  readonly #keys: KeyHistory;
  readonly #catchUp: (task: () => void) => void;
  #streams = new Set<WatchStream>();

  /** `catchUp` runs a task later: etcd looks for watches that begin in the past periodically. */
  constructor(keys: KeyHistory, catchUp: (task: () => void) => void) {
    this.#keys = keys;
    this.#catchUp = catchUp;
  }

  open(send: (reply: WatchReply) => void): WatchStream {
    const stream = new WatchStream(send);
    this.#streams.add(stream);
    return stream;
  }

  close(stream: WatchStream): void {
    this.#streams.delete(stream);
  }

  closeAll(): void {
    this.#streams = new Set();
  }

  take(stream: WatchStream, request: WatchRequest): void {
    if (!this.#streams.has(stream)) return;
    if ("cancelRequest" in request) {
      stream.watches.delete(request.cancelRequest.watchId);
      return;
    }
    const target = request.createRequest;
    const watch: ServerWatch = { target, send: stream.send, isLive: false };
    const asked = target.startRevision;
    const start = asked > 0n ? asked : this.#keys.revision + 1n;
    stream.watches.set(target.watchId, watch);
    this.#reply(watch, { created: true });
    if (start <= this.#keys.compacted) {
      stream.watches.delete(target.watchId);
      return this.#reply(watch, { canceled: true });
    }
    if (start > this.#keys.revision) {
      watch.isLive = true;
      return;
    }
    this.#catchUp(() => {
      if (!this.#streams.has(stream) || stream.watches.get(target.watchId) !== watch) return;
      watch.isLive = true;
      for (const events of this.#keys.eventsFrom(start)) this.#tell(watch, events);
    });
  }

  /** The events of one revision. */
  publish(events: readonly WatchEvent[]): void {
    for (const { watches } of this.#streams) {
      for (const watch of watches.values()) if (watch.isLive) this.#tell(watch, events);
    }
  }

  #tell(watch: ServerWatch, events: readonly WatchEvent[]): void {
    const { key, rangeEnd, filters, prevKv } = watch.target;
    const wanted = events.filter(({ type, kv }) => {
      if (type === "Put" && filters.includes("Noput")) return false;
      return isIn(kv.key.toString(), key.toString(), rangeEnd?.toString());
    });
    if (wanted.length === 0) return;
    const told = prevKv ? wanted : wanted.map(({ type, kv }) => ({ type, kv }));
    this.#reply(watch, { events: told });
  }

  #reply(
    { target, send }: ServerWatch,
    what: Partial<Pick<WatchReply, "created" | "canceled" | "events">>,
  ): void {
    const header = this.#keys.header();
    const { watchId } = target;
    send({ header, watchId, created: false, canceled: false, events: [], ...what });
  }
}
