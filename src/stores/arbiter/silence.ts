import type { Limited, Limits } from "../../time/limits.js";
import type { Port } from "../../time/port.js";

/**
 * A timer this late means that the whole process was stopped: the store gets its chance to answer.
 */
const OVERSLEPT_MS = 250;

/** Whoever waits for a store that may fall silent. */
export interface Listener {
  /** So often the store is asked to say something. */
  readonly touchMs: number;
  onSilence(): void;
}

/** The time since the store said anything to one who waits for it, and how long that may last. */
export class Silence implements Limited {
  readonly #port: Port;
  readonly #limits: Limits;
  readonly #limitMs: number;
  readonly #listener: Listener;
  #heardMs: number;
  dueMs: number;
  heapIndex = -1;

  constructor(port: Port, limits: Limits, limitMs: number, sinceMs: number, listener: Listener) {
    this.#port = port;
    this.#limits = limits;
    this.#limitMs = limitMs;
    this.#listener = listener;
    this.#heardMs = sinceMs;
    this.dueMs = sinceMs + limitMs;
    limits.add(this);
  }

  heard(): void {
    // A sleep of the machine that shows only later would look like a silence of the store.
    this.#heardMs = this.#port.clock.exactMs();
  }

  end(): void {
    this.#limits.remove(this);
  }

  onDue(): void {
    const nowMs = this.#port.clock.nowMs();
    const restMs = this.#heardMs + this.#limitMs - nowMs;
    // The next touch has to come first: the last one may count as failed by now.
    const chanceMs = Math.min(this.#listener.touchMs + OVERSLEPT_MS, this.#limitMs);
    if (restMs > 0) this.#goOn(nowMs + restMs);
    else if (nowMs > this.dueMs + OVERSLEPT_MS) this.#goOn(nowMs + chanceMs);
    else this.#listener.onSilence();
  }

  #goOn(dueMs: number): void {
    this.dueMs = dueMs;
    this.#limits.add(this);
  }
}
