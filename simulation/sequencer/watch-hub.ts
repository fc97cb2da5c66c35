/** The watches of a simulated etcd: each has a range of keys and a first revision. */
import type { WatchEvent, WatchReply, WatchRequest } from "../../src/stores/etcd/etcd-client.js";

export interface HubSurroundings {
  readonly revision: bigint;
  readonly term: bigint;
  /** Revisions up to this one are not kept. */
  readonly compacted: bigint;
  /** The events from this revision on, one list for each revision. */
  eventsFrom(revision: bigint): readonly (readonly WatchEvent[])[];
  /** Runs a task after a while: etcd looks for watches that begin in the past periodically. */
  soon(task: () => void): void;
}

type Created = Extract<WatchRequest, { readonly create_request: unknown }>["create_request"];

interface ServerWatch {
  readonly target: Created;
  readonly send: (reply: WatchReply) => void;
  /** The watch is told new events as they happen. */
  isLive: boolean;
}

/** One stream of a client. */
export class WatchStream {
  readonly watches: Map<number, ServerWatch> = new Map();
  readonly send: (reply: WatchReply) => void;

  constructor(send: (reply: WatchReply) => void) {
    this.send = send;
  }
}

export class WatchHub {
  readonly #around: HubSurroundings;
  #streams = new Set<WatchStream>();

  constructor(around: HubSurroundings) {
    this.#around = around;
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
    if ("cancel_request" in request) {
      stream.watches.delete(request.cancel_request.watch_id);
      return;
    }
    const target = request.create_request;
    const watch: ServerWatch = { target, send: stream.send, isLive: false };
    const start = BigInt(target.start_revision);
    stream.watches.set(target.watch_id, watch);
    this.#reply(watch, { created: true });
    if (start <= this.#around.compacted) {
      stream.watches.delete(target.watch_id);
      return this.#reply(watch, { canceled: true });
    }
    if (start > this.#around.revision) {
      watch.isLive = true;
      return;
    }
    this.#around.soon(() => {
      if (!this.#streams.has(stream) || stream.watches.get(target.watch_id) !== watch) return;
      watch.isLive = true;
      for (const events of this.#around.eventsFrom(start)) this.#tell(watch, events);
    });
  }

  /** The events of one revision. */
  publish(events: readonly WatchEvent[]): void {
    for (const { watches } of this.#streams) {
      for (const watch of watches.values()) if (watch.isLive) this.#tell(watch, events);
    }
  }

  #tell(watch: ServerWatch, events: readonly WatchEvent[]): void {
    const { key, range_end, filters, prev_kv } = watch.target;
    const wanted = events.filter(({ type, kv }) => {
      if (type === "Put" && filters.includes("Noput")) return false;
      return isIn(kv.key.toString(), key.toString(), range_end?.toString());
    });
    if (wanted.length === 0) return;
    const told = prev_kv ? wanted : wanted.map(({ type, kv }) => ({ type, kv }));
    this.#reply(watch, { events: told });
  }

  #reply(
    { target, send }: ServerWatch,
    what: Partial<Pick<WatchReply, "created" | "canceled" | "events">>,
  ): void {
    const { revision, term } = this.#around;
    const header = { revision: String(revision), raft_term: String(term) };
    const watch_id = String(target.watch_id);
    send({ header, watch_id, created: false, canceled: false, events: [], ...what });
  }
}

/** Whether a key is in a range, as etcd defines it. */
export function isIn(key: string, from: string, end: string | undefined): boolean {
  return end === undefined ? key === from : key >= from && key < end;
}
