/**
 * All watches of one store, on one stream.
 *
 * A watch is never repaired: when it is cancelled (its revision was compacted), its stream ends or
 * its member is gone, it is told as broken, and whoever watched looks at the store and watches from
 * there.
 */
import type { Port } from "../../time/port.js";
import type { Timer } from "../../time/timers.js";
import { within } from "../../time/timers.js";
import type { Watch } from "../sequencer/sequencer.js";
import { hangUp } from "./etcd-calls.js";
import type {
  EtcdClient,
  EtcdStream,
  WatchEvent,
  WatchReply,
  WatchRequest,
} from "./etcd-client.js";

export interface WatchTarget {
  readonly key: Buffer;
  readonly range_end?: Buffer;
  readonly start_revision: string;
  readonly prev_kv: boolean;
  readonly filters: ("Noput" | "Nodelete")[];
}

export interface WatchListener {
  /** In their order; those of one revision come together. */
  onEvents(events: readonly WatchEvent[]): void;
  /**
   * The store is already past the start of the watch. It will tell what happened since, but not
   * soon: etcd looks for such watches ten times a second.
   */
  onBehind(at: bigint): void;
  onBroken(): void;
}

const OPEN_MS = 2_000;
/** An unused stream would keep the process alive. */
const LINGER_MS = 1_000;
const PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;

export class EtcdWatches {
  readonly #client: EtcdClient;
  readonly #port: Port;
  readonly #active = new Map<number, { readonly from: bigint; readonly listener: WatchListener }>();
  #stream: EtcdStream<WatchRequest, WatchReply> | null = null;
  #isOpening = false;
  #queued: WatchRequest[] = [];
  #lingering: Timer | undefined;
  #lastId = 0;
  #failures = 0;
  #isClosed = false;

  constructor(client: EtcdClient, port: Port) {
    this.#client = client;
    this.#port = port;
  }

  open(target: WatchTarget, listener: WatchListener): Watch {
    const id = ++this.#lastId;
    this.#active.set(id, { from: BigInt(target.start_revision), listener });
    this.#lingering?.cancel();
    this.#write({ create_request: { ...target, watch_id: id } });
    return {
      close: () => {
        if (!this.#active.delete(id)) return;
        this.#write({ cancel_request: { watch_id: id } });
        this.#linger();
      },
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#lingering?.cancel();
    this.#active.clear();
    this.#hangUp();
  }

  #write(request: WatchRequest): void {
    if (this.#stream) this.#stream.write(request);
    else if ("create_request" in request) {
      this.#queued.push(request);
      void this.#open();
    }
  }

  async #open(): Promise<void> {
    if (this.#isOpening || this.#isClosed) return;
    this.#isOpening = true;
    try {
      const opening = this.#client.watchClient.watch();
      opening.then(
        (late) => {
          // Whatever happens to it, an error without a listener would end the process.
          late.on("error", () => {});
          if (!this.#isOpening) hangUp(late);
        },
        () => {},
      );
      const stream = await within(this.#port.timers, OPEN_MS, opening);
      this.#isOpening = false;
      if (this.#isClosed) return hangUp(stream);
      this.#listen(stream);
    } catch {
      this.#isOpening = false;
      this.#break();
    }
  }

  #listen(stream: EtcdStream<WatchRequest, WatchReply>): void {
    this.#stream = stream;
    const onOver = (): void => {
      if (this.#stream !== stream) return;
      this.#hangUp();
      this.#break();
    };
    stream.on("data", (reply) => {
      if (this.#stream === stream) this.#onReply(reply);
    });
    stream.on("error", onOver);
    stream.on("end", onOver);
    for (const request of this.#queued.splice(0)) {
      // Closed before it was ever sent.
      const isWanted =
        "create_request" in request && this.#active.has(request.create_request.watch_id);
      if (isWanted) stream.write(request);
    }
    this.#linger();
  }

  #onReply({ header, watch_id, created, canceled, events }: WatchReply): void {
    this.#failures = 0;
    const id = Number(watch_id);
    const watch = this.#active.get(id);
    const listener = watch?.listener;
    if (canceled) {
      if (listener) {
        this.#active.delete(id);
        listener.onBroken();
        this.#linger();
      } else if (created) {
        // Refused without saying which: nobody can rely on its watch any more.
        this.#hangUp();
        this.#break();
      }
      return;
    }
    if (events.length > 0) listener?.onEvents(events);
    else if (created && watch) {
      const at = BigInt(header.revision);
      if (at >= watch.from) watch.listener.onBehind(at);
    }
  }

  /** Tells everybody; after failures in a row not at once, so that looking again does not spin. */
  #break(): void {
    const broken = [...this.#active.values()];
    this.#active.clear();
    this.#queued = [];
    if (this.#isClosed) return;
    const tell = (): void => {
      for (const { listener } of broken) listener.onBroken();
    };
    const pauseMs =
      this.#failures === 0 ? 0 : Math.min(PAUSE_MS * 2 ** this.#failures, LONGEST_PAUSE_MS);
    this.#failures += 1;
    this.#port.timers.after(pauseMs, tell);
  }

  #linger(): void {
    if (this.#active.size > 0 || !this.#stream) return;
    this.#lingering?.cancel();
    this.#lingering = this.#port.timers.after(LINGER_MS, () => {
      if (this.#active.size === 0) this.#hangUp();
    });
  }

  #hangUp(): void {
    const stream = this.#stream;
    this.#stream = null;
    if (stream) hangUp(stream);
  }
}
