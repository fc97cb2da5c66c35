import { nowMs } from "./clock.js";

const EVERY_MS = 10;

/** Measures how late the timers of this process are, because the machine is busy. */
export class Lateness {
  readonly #timer: NodeJS.Timeout;
  #lastMs = nowMs();
  #longestMs = 0;

  /** Calls `onLonger` whenever a timer is later than all before it. */
  constructor(onLonger: (lateMs: number) => void = () => undefined) {
    this.#timer = setInterval(() => {
      const atMs = nowMs();
      const lateMs = atMs - this.#lastMs - EVERY_MS;
      this.#lastMs = atMs;
      if (lateMs <= this.#longestMs) return;
      this.#longestMs = lateMs;
      onLonger(lateMs);
    }, EVERY_MS);
    this.#timer.unref();
  }

  get longestMs(): number {
    return this.#longestMs;
  }

  end(): void {
    clearInterval(this.#timer);
  }
}
