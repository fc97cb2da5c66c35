/**
 * All watches of a store, on one stream.
 *
 * A watch is never repaired. If etcd cancels it (its revision was compacted) or its stream ends,
 * its listener learns that it is broken, reads the queue, and opens a watch that begins there.
 */
import { guarded } from "../../events/foreign-data.js";
import type { Watch } from "../../families/session/sequencer.js";
import { Backoff } from "../../time/backoff.js";
import type { Runtime } from "../../time/runtime.js";
import { within } from "../../time/timers.js";
import type { EtcdClient, EtcdStream } from "./client.js";
import {
  WATCH,
  type WatchCreate,
  type WatchEvent,
  type WatchReply,
  type WatchRequest,
} from "./wire/messages.js";

export interface WatchTarget extends Omit<WatchCreate, "watchId" | "startRevision"> {
  /** The last revision that the listener knows of. */
  readonly since: bigint;
  /**
   * True: reports all events after `since`, those from before the start of the watch late. False:
   * reports events from its start on, at once.
   */
  readonly isReplayed: boolean;
}

export interface WatchListener {
  /** Events come in the order of their revisions; those of one revision come together. */
  onEvents(events: readonly WatchEvent[]): void;
  /**
   * etcd was past `since` when the watch started, at the revision `at`. It reports the events up to
   * then only if the watch is replayed, and late: it looks for such watches ten times a second.
   */
  onBehind(at: bigint): void;
  onBroken(): void;
}

interface ActiveWatch {
  readonly since: bigint;
  readonly listener: WatchListener;
}

/** Starts a watch at the next revision. */
const NEXT_REVISION = 0n;
const OPEN_MS = 2_000;
const RETRY_MS = { firstMs: 100, longestMs: 2_000 };

export class EtcdWatches {
  readonly #client: EtcdClient;
  readonly #runtime: Runtime;
  readonly #backoff: Backoff;
  readonly #active = new Map<bigint, ActiveWatch>();
  #stream: EtcdStream<WatchRequest> | null = null;
  /** Changes with every stream: the replies of an earlier one are ignored. */
  #streamNumber = 0;
  #isOpening = false;
  #queued: WatchRequest[] = [];
  #lastId = 0n;
  #isFailing = false;
  #isClosed = false;

  constructor(client: EtcdClient, runtime: Runtime) {
    this.#client = client;
    this.#runtime = runtime;
    this.#backoff = new Backoff(runtime.random, RETRY_MS);
  }

  open({ since, isReplayed, ...range }: WatchTarget, listener: WatchListener): Watch {
    this.#lastId += 1n;
    const watchId = this.#lastId;
    const startRevision = isReplayed ? since + 1n : NEXT_REVISION;
    this.#active.set(watchId, { since, listener });
    const request = { createRequest: { ...range, startRevision, watchId } };
    if (this.#stream) this.#stream.write(request);
    else {
      this.#queued.push(request);
      void this.#open();
    }
    return {
      close: () => {
        if (this.#active.delete(watchId)) this.#stream?.write({ cancelRequest: { watchId } });
      },
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#active.clear();
    this.#hangUp();
  }

  async #open(): Promise<void> {
    if (this.#isOpening || this.#isClosed) return;
    this.#isOpening = true;
    this.#streamNumber += 1;
    const number = this.#streamNumber;
    const onEnd = (): void => {
      if (this.#streamNumber !== number) return;
      this.#hangUp();
      this.#break();
    };
    const onReply = guarded("etcd", "the events of a watch", (reply: WatchReply) => {
      if (this.#streamNumber !== number) return;
      try {
        this.#onReply(reply);
      } catch (error) {
        // The events of this reply are lost: all watches begin again.
        onEnd();
        throw error;
      }
    });
    const opening = this.#client.openStream(WATCH, { onReply, onEnd });
    opening.then(
      (late) => {
        if (this.#streamNumber !== number) late.close();
      },
      () => {},
    );
    try {
      const stream = await within(this.#runtime.timers, OPEN_MS, opening);
      this.#isOpening = false;
      if (this.#streamNumber === number) return this.#use(stream);
      stream.close();
      // Watches that came after the end of this stream wait for the next one.
      if (this.#queued.length > 0) void this.#open();
    } catch {
      this.#isOpening = false;
      if (this.#streamNumber !== number) return;
      this.#hangUp();
      this.#break();
    }
  }

  #use(stream: EtcdStream<WatchRequest>): void {
    this.#stream = stream;
    for (const request of this.#queued.splice(0)) {
      // A watch may have been closed before it was sent.
      const isWanted =
        "createRequest" in request && this.#active.has(request.createRequest.watchId);
      if (isWanted) stream.write(request);
    }
  }

  #onReply({ header, watchId, created, canceled, events }: WatchReply): void {
    this.#isFailing = false;
    this.#backoff.reset();
    const watch = this.#active.get(watchId);
    if (canceled) {
      if (watch) {
        this.#active.delete(watchId);
        watch.listener.onBroken();
      } else if (created) {
        // etcd does not say which watch it refused, so it may be any of them.
        this.#hangUp();
        this.#break();
      }
    } else if (events.length > 0) watch?.listener.onEvents(events);
    else if (created && watch && header.revision > watch.since) {
      watch.listener.onBehind(header.revision);
    }
  }

  /** Reports later after several failures in a row, so that listeners do not spin. */
  #break(): void {
    const pauseMs = this.#isFailing ? this.#backoff.nextMs() : 0;
    this.#isFailing = true;
    const broken = [...this.#active.values()];
    this.#active.clear();
    this.#queued = [];
    if (this.#isClosed) return;
    this.#runtime.timers.after(pauseMs, () => {
      for (const { listener } of broken) listener.onBroken();
    });
  }

  #hangUp(): void {
    const stream = this.#stream;
    this.#stream = null;
    this.#streamNumber += 1;
    stream?.close();
  }
}
