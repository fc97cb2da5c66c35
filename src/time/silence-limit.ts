import type { Limited, Limits } from "./limits.js";
import type { Runtime } from "./runtime.js";

/**
 * The length of one step of listening, and the most that one step counts. A process that is
 * stopped or blocked during a step hears nothing in that time, so the rest of the step is no
 * silence of the store.
 */
const STEP_MS = 250;
/** Timers are no more exact than this, and a step as long as a rounding error would never end. */
const MIN_STEP_MS = 1;

/** The part of this process that waits for a store which may fall silent. */
export interface SilenceListener {
  /** The time between two questions to the store while it waits. */
  readonly heartbeatMs: number;
  onSilence(): void;
}

/**
 * Tells a listener when the store has said nothing for `limitMs`.
 *
 * Only time in which this process was able to listen counts. Before the verdict the process must
 * have listened, in steps, for as long as one question to the store and its answer take: a process
 * that was stopped or blocked asks once more after it goes on, and the answer comes first.
 */
export class SilenceLimit implements Limited {
  readonly #runtime: Runtime;
  readonly #limits: Limits;
  readonly #limitMs: number;
  readonly #listener: SilenceListener;
  readonly keepsAlive: boolean;
  #heardMs: number;
  #listenedMs = 0;
  #stepFromMs = Number.POSITIVE_INFINITY;
  dueMs = 0;
  heapIndex = -1;

  constructor(
    runtime: Runtime,
    limits: Limits,
    listener: SilenceListener,
    silence: {
      readonly limitMs: number;
      readonly sinceMs: number;
      readonly keepsAlive?: boolean;
    },
  ) {
    this.#runtime = runtime;
    this.#limits = limits;
    this.#listener = listener;
    this.#limitMs = silence.limitMs;
    this.#heardMs = silence.sinceMs;
    this.keepsAlive = silence.keepsAlive ?? true;
    this.#plan(runtime.clock.nowMs());
  }

  heard(): void {
    // A sleep of the machine that shows only later would look like a silence of the store.
    this.#heardMs = this.#runtime.clock.exactMs();
    this.#listenedMs = 0;
    this.#stepFromMs = Number.POSITIVE_INFINITY;
  }

  end(): void {
    this.#limits.remove(this);
  }

  onDue(): void {
    const nowMs = this.#runtime.clock.nowMs();
    this.#listenedMs += Math.min(Math.max(0, nowMs - this.#stepFromMs), STEP_MS);
    // rule: frozen-time-is-not-silence
    const isOver = this.#restMs(nowMs) < MIN_STEP_MS && this.#missingMs < MIN_STEP_MS;
    if (isOver) this.#listener.onSilence();
    else this.#plan(nowMs);
  }

  /** The steps begin one chance before the limit; the last of them ends with it. */
  #plan(nowMs: number): void {
    const restMs = this.#restMs(nowMs);
    const untilStepsMs = restMs - this.#chanceMs;
    if (untilStepsMs >= MIN_STEP_MS) {
      this.dueMs = nowMs + untilStepsMs;
    } else {
      const stepMs = this.#missingMs < MIN_STEP_MS ? restMs : Math.min(this.#missingMs, STEP_MS);
      this.dueMs = nowMs + Math.max(stepMs, MIN_STEP_MS);
      this.#stepFromMs = nowMs;
    }
    this.#limits.add(this);
  }

  #restMs(nowMs: number): number {
    return this.#heardMs + this.#limitMs - nowMs;
  }

  get #missingMs(): number {
    return this.#chanceMs - this.#listenedMs;
  }

  /** The next heartbeat and its answer fit into this: the last one may count as failed by now. */
  get #chanceMs(): number {
    return Math.min(this.#listener.heartbeatMs + STEP_MS, this.#limitMs);
  }
}
