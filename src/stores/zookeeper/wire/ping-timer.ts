import type { Timer, Timers } from "../../../time/timers.js";

const BEATS_PER_TIMEOUT = 6;
const MAX_SILENT_BEATS = 4;

/** The part of a connection that pings are for. */
export interface PingListener {
  ping(): void;
  /** Nothing arrived for two thirds of the time-out, and no further ping follows. */
  onSilence(): void;
}

/**
 * A server ends a session that is silent for its time-out, and this process has to notice a silent
 * server before that. Time is counted in beats of a sixth of the time-out: a ping follows a beat in
 * which nothing was sent, and silence is told after four beats in which nothing arrived. A process
 * that was stopped sees one late beat, and reads all that arrived meanwhile before the next one.
 */
export class PingTimer {
  readonly #timers: Timers;
  readonly #listener: PingListener;
  #timer: Timer | undefined;
  #silentBeats = 0;
  #hasSent = true;

  constructor(timers: Timers, listener: PingListener) {
    this.#timers = timers;
    this.#listener = listener;
  }

  start(timeoutMs: number): void {
    this.#timer = this.#timers.after(timeoutMs / BEATS_PER_TIMEOUT, () => {
      this.#silentBeats += 1;
      if (this.#silentBeats >= MAX_SILENT_BEATS) return this.#listener.onSilence();
      if (!this.#hasSent) this.#listener.ping();
      this.#hasSent = !this.#hasSent;
      this.start(timeoutMs);
    });
  }

  sent(): void {
    this.#hasSent = true;
  }

  heard(): void {
    this.#silentBeats = 0;
  }

  stop(): void {
    this.#timer?.cancel();
  }
}
