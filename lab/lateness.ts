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

/** A trial that was late is repeated, with leases so many times as long. */
const STRETCHES = [1, 2, 4, 4, 4];
/** After so many trials in time the next one has shorter leases. */
const PATIENCE = 5;

/**
 * How long the leases of a trial must be on this machine, as its last trials show. On a busy
 * machine trials with short leases are late again and again, and each of them makes it busier.
 */
export class Pace {
  #at = 0;
  #inTime = 0;

  /** The stretches to try, one after the other. */
  stretches(): readonly number[] {
    return STRETCHES.slice(this.#at);
  }

  /** A trial was in time. `late`: how many tries were late before it. */
  note(late: number): void {
    if (late > 0) {
      this.#at = Math.min(this.#at + late, STRETCHES.indexOf(4));
      this.#inTime = 0;
      return;
    }
    this.#inTime += 1;
    if (this.#inTime < PATIENCE) return;
    this.#at = Math.max(0, this.#at - 1);
    this.#inTime = 0;
  }
}

/** CLOCK_MONOTONIC in milliseconds: the same clock in every process of this machine. */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
