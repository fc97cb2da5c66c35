/**
 * All watches of one store, on one stream.
 *
 * A watch is never repaired. When etcd cancels it (its revision was compacted), or its stream ends,
 * the watch tells its listener that it is broken. The listener reads the queue and opens a watch
 * that begins at that reading.
 *
 * An open stream keeps the process alive, and the client cannot change that; but a lease that is
 * only held must not keep the process alive. So while all watches are of holders, and no timer or
 * task is left in the process, the stream is closed for a moment. If the stream was all that kept
 * the process alive, the process ends. If not, the watches count as broken, and begin again.
 */
import { guarded } from "../../foreign-data.js";
import { Backoff } from "../../time/backoff.js";
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
  /** The last revision that the listener knows of. */
  readonly since: bigint;
  /**
   * Tells all events after `since`, those before the start of the watch late. Otherwise the watch
   * tells what happens from its start on, at once.
   */
  readonly isReplayed: boolean;
  readonly prev_kv: boolean;
  readonly filters: ("Noput" | "Nodelete")[];
}

export interface WatchListener {
  /** Events come in the order of revisions; those of one revision come together. */
  onEvents(events: readonly WatchEvent[]): void;
  /**
   * etcd was past `since` when the watch started, at the revision `at`. It tells the events up to
   * then only if the watch is replayed, and not at once: it looks for such watches ten times a
   * second.
   */
  onBehind(at: bigint): void;
  onBroken(): void;
}

interface ActiveWatch {
  readonly since: bigint;
  /** The watch of a holder, which must not keep the process alive. */
  readonly isQuiet: boolean;
  readonly listener: WatchListener;
}

/** The start of a watch that begins with the next revision. */
const PRESENT = "0";
const OPEN_MS = 2_000;
/** A stream without watches is closed after this, because it keeps the process alive. */
const LINGER_MS = 1_000;
/** A stream of holders is closed for a moment after this; each time later, up to the longest. */
const REST_MS = 1_000;
const LONGEST_REST_MS = 10_000;
const GAP_MS = 50;
const RETRY_MS = { firstMs: 100, longestMs: 2_000 };

export class EtcdWatches {
  readonly #client: EtcdClient;
  readonly #port: Port;
  readonly #isIdle: () => boolean;
  readonly #backoff: Backoff;
  readonly #active = new Map<number, ActiveWatch>();
  #stream: EtcdStream<WatchRequest, WatchReply> | null = null;
  #isOpening = false;
  #queued: WatchRequest[] = [];
  #lingering: Timer | undefined;
  #resting: Timer | undefined;
  #restMs = REST_MS;
  #lastId = 0;
  #isFailing = false;
  #isClosed = false;

  /** `isIdle`: whether nothing but connections and its output keeps the process alive. */
  constructor(client: EtcdClient, port: Port, isIdle: () => boolean) {
    this.#client = client;
    this.#port = port;
    this.#isIdle = isIdle;
    this.#backoff = new Backoff(port.random, RETRY_MS);
  }

  open(target: WatchTarget, isQuiet: boolean, listener: WatchListener): Watch {
    const id = ++this.#lastId;
    const { since, isReplayed, ...range } = target;
    const start_revision = isReplayed ? String(since + 1n) : PRESENT;
    this.#active.set(id, { since, isQuiet, listener });
    this.#lingering?.cancel();
    if (isQuiet) this.#restLater();
    this.#write({ create_request: { ...range, start_revision, watch_id: id } });
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
    this.#resting?.cancel();
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
          // An error without a listener would end the process.
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
    const onReply = guarded("etcd", "the events of a watch", (reply: WatchReply) => {
      if (this.#stream !== stream) return;
      try {
        this.#onReply(reply);
      } catch (error) {
        // The events of this reply are lost: all watches begin again.
        onOver();
        throw error;
      }
    });
    stream.on("data", onReply);
    stream.on("error", onOver);
    stream.on("end", onOver);
    for (const request of this.#queued.splice(0)) {
      // A watch may have been closed before it was sent.
      const isWanted =
        "create_request" in request && this.#active.has(request.create_request.watch_id);
      if (isWanted) stream.write(request);
    }
    this.#linger();
  }

  #onReply({ header, watch_id, created, canceled, events }: WatchReply): void {
    this.#isFailing = false;
    this.#backoff.reset();
    const id = Number(watch_id);
    const watch = this.#active.get(id);
    const listener = watch?.listener;
    if (canceled) {
      if (listener) {
        this.#active.delete(id);
        listener.onBroken();
        this.#linger();
      } else if (created) {
        // etcd does not say which watch it refused: it may be any of them.
        this.#hangUp();
        this.#break();
      }
      return;
    }
    if (events.length > 0) listener?.onEvents(events);
    else if (created && watch) {
      const at = BigInt(header.revision);
      if (at > watch.since) watch.listener.onBehind(at);
    }
  }

  /** After several failures in a row, listeners are told later, so that they do not spin. */
  #break(): void {
    const pauseMs = this.#isFailing ? this.#backoff.nextMs() : 0;
    this.#isFailing = true;
    this.#tellBroken(pauseMs);
  }

  #tellBroken(delayMs: number): void {
    const broken = [...this.#active.values()];
    this.#active.clear();
    this.#queued = [];
    if (this.#isClosed) return;
    this.#port.timers.after(delayMs, () => {
      for (const { listener } of broken) listener.onBroken();
    });
  }

  #restLater(): void {
    this.#resting ??= this.#port.timers.after(this.#restMs, () => {
      this.#resting = undefined;
      this.#rest();
    });
  }

  #rest(): void {
    if (this.#active.size === 0) return;
    const isQuiet = [...this.#active.values()].every((watch) => watch.isQuiet);
    if (!this.#stream || !isQuiet || !this.#isIdle()) return this.#restLater();
    this.#restMs = Math.min(2 * this.#restMs, LONGEST_REST_MS);
    this.#hangUp();
    this.#tellBroken(GAP_MS);
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
