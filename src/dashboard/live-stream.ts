/**
 * The live stream of one viewer: server-sent events, a message after every look. A viewer that
 * reads slowly misses messages and gets the newest one when it reads again, so no more than one
 * message is kept for it. A viewer that stopped reading, or whose authorization is old, is ended:
 * its page asks again.
 */
import type { Timers } from "../time/timers.js";
import type { LockName } from "./history.js";
import type { Sampler, Viewer } from "./sampler.js";

const SILENCE_MS = 60_000;
const LIFE_MS = 300_000;

export class LiveStream implements Viewer {
  readonly lock: LockName | null;
  readonly body: ReadableStream<Uint8Array>;
  readonly #message: () => object;
  readonly #timers: Timers;
  readonly #encoder = new TextEncoder();
  readonly #end: () => void;
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  #hasNews = true;

  /** `message` makes the next message, when the viewer is ready for it. */
  constructor(
    sampler: Sampler,
    timers: Timers,
    lock: LockName | null,
    message: () => object,
    onEnd: (stream: LiveStream) => void,
  ) {
    this.lock = lock;
    this.#message = message;
    this.#timers = timers;
    let silence = this.#timers.after(SILENCE_MS, () => this.close());
    const life = this.#timers.after(LIFE_MS, () => this.close());
    this.body = new ReadableStream({
      start: (controller) => {
        this.#controller = controller;
      },
      pull: () => {
        silence.cancel();
        silence = this.#timers.after(SILENCE_MS, () => this.close());
        this.#send();
      },
      cancel: () => this.#end(),
    });
    const remove = sampler.add(this);
    this.#end = () => {
      this.#controller = null;
      silence.cancel();
      life.cancel();
      remove();
      onEnd(this);
    };
  }

  onLook(): void {
    this.#hasNews = true;
    this.#send();
  }

  close(): void {
    const controller = this.#controller;
    if (!controller) return;
    this.#end();
    controller.close();
  }

  #send(): void {
    const controller = this.#controller;
    if (!controller || !this.#hasNews || (controller.desiredSize ?? 0) <= 0) return;
    this.#hasNews = false;
    controller.enqueue(this.#encoder.encode(`data: ${JSON.stringify(this.#message())}\n\n`));
  }
}
