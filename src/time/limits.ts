import { Heap, type HeapItem } from "./heap.js";
import type { Runtime } from "./runtime.js";
import type { Timer } from "./timers.js";

/** Something that has a time limit. */
export interface Limited extends HeapItem {
  /** Fixed while it is among the limits. */
  readonly dueMs: number;
  /** Whether the process stays alive for it. Default true. */
  readonly keepsAlive?: boolean;
  /** Its time is over, and it is no longer among the limits. */
  onDue(): void;
  /** The limits were stopped: `onDue` will never be called, so a wait for it must end now. */
  onStop?(): void;
}

/**
 * Many time limits on one timer. Nearly all of them are taken away long before they are due, so the
 * timer is left as it was when that happens, and only looked at again when it fires. The process
 * stays alive while there is a limit that keeps it alive.
 */
export class Limits {
  readonly #runtime: Runtime;
  readonly #items = new Heap<Limited>((a, b) => a.dueMs < b.dueMs);
  #timer: Timer | undefined;
  #timerMs = Number.POSITIVE_INFINITY;
  #sleptMs = 0;
  /** How many limits keep the process alive. */
  #keepers = 0;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  add(item: Limited): void {
    this.#items.push(item);
    if (item.keepsAlive !== false) this.#keepers += 1;
    if (item.dueMs < this.#timerMs) this.#arm(item.dueMs);
    else if (this.#isLate) this.#arm(this.#items.peek()?.dueMs ?? item.dueMs);
    else if (this.#isStopped) this.#giveUp(item);
    else if (this.#keepers === 1) this.#timer?.keepAlive(true);
  }

  /** Nothing where it is not among the limits. */
  remove(item: Limited): void {
    if (item.heapIndex < 0) return;
    this.#take(item);
    if (this.#keepers === 0) this.#timer?.keepAlive(false);
  }

  /** Ends the timer; limits that are left, or come later, never become due. */
  stop(): void {
    this.#timer?.cancel();
    this.#timerMs = Number.NEGATIVE_INFINITY;
    for (const item of [...this.#items.values()]) this.#giveUp(item);
  }

  #take(item: Limited): void {
    this.#items.remove(item);
    if (item.keepsAlive !== false) this.#keepers -= 1;
  }

  get #isStopped(): boolean {
    return this.#timerMs === Number.NEGATIVE_INFINITY;
  }

  /** Whether the machine slept since the timer was set, which stood still as long. */
  get #isLate(): boolean {
    return this.#runtime.clock.sleptMs > this.#sleptMs && !this.#isStopped;
  }

  #giveUp(item: Limited): void {
    this.remove(item);
    item.onStop?.();
  }

  #arm(dueMs: number): void {
    this.#timer?.cancel();
    this.#timerMs = dueMs;
    this.#sleptMs = this.#runtime.clock.sleptMs;
    const delayMs = Math.max(1, dueMs - this.#runtime.clock.nowMs());
    this.#timer = this.#runtime.timers.after(delayMs, () => this.#onTimer(), this.#keepers > 0);
  }

  #onTimer(): void {
    this.#timer = undefined;
    this.#timerMs = Number.POSITIVE_INFINITY;
    const nowMs = this.#runtime.clock.nowMs();
    for (let next = this.#items.peek(); next; next = this.#items.peek()) {
      // `onDue` may have added further limits, and armed the timer for them.
      if (next.dueMs > nowMs) {
        if (next.dueMs < this.#timerMs) this.#arm(next.dueMs);
        return;
      }
      this.#take(next);
      next.onDue();
    }
  }
}
