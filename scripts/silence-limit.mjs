// Ends what makes no progress, on fast and slow machines alike.
import { availableParallelism, loadavg } from "node:os";

const TICK_MS = 1_000;

/**
 * Calls `onSilent` once if nothing calls `progress` for as long as `limitMs` says. Only time in
 * which the machine had time for this run counts: a second of a machine with twice the work that
 * its processors can do is half a second, and a machine that was asleep made no progress at all.
 */
export class SilenceLimit {
  /** @type {() => number} */
  #limitMs;
  /** @type {() => void} */
  #onSilent;
  #silentMs = 0;
  #lastMs = performance.now();
  #timer = setInterval(() => this.#tick(), TICK_MS).unref();

  /**
   * @param {() => number} limitMs
   * @param {() => void} onSilent
   */
  constructor(limitMs, onSilent) {
    this.#limitMs = limitMs;
    this.#onSilent = onSilent;
  }

  progress() {
    this.#silentMs = 0;
  }

  stop() {
    clearInterval(this.#timer);
  }

  #tick() {
    const nowMs = performance.now();
    const [load = 0] = loadavg();
    // A late tick is a second, too: this process did not run.
    const sinceMs = Math.min(nowMs - this.#lastMs, TICK_MS);
    this.#lastMs = nowMs;
    this.#silentMs += sinceMs / Math.max(1, load / availableParallelism());
    if (this.#silentMs < this.#limitMs()) return;
    this.stop();
    this.#onSilent();
  }
}
