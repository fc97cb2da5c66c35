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
