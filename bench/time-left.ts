/** The time of questions that are not answered yet, by the times of their last runs. */
export class TimeLeft {
  readonly #expectedMs: number[];
  #startMs = performance.now();

  /** NaN stands for a question that never ran: it counts as an average one. */
  constructor(lastTookMs: readonly number[]) {
    const known = lastTookMs.filter((ms) => !Number.isNaN(ms));
    const averageMs = known.reduce((sum, ms) => sum + ms, 0) / known.length;
    this.#expectedMs = lastTookMs.map((ms) => (Number.isNaN(ms) ? averageMs : ms));
  }

  /** The first question that is left has been answered. */
  next(): void {
    this.#expectedMs.shift();
    this.#startMs = performance.now();
  }

  /** Empty when no question has ever run. */
  text(nowMs: number = performance.now()): string {
    const [currentMs = 0, ...others] = this.#expectedMs;
    const restMs = Math.max(0, currentMs - (nowMs - this.#startMs));
    const leftMs = others.reduce((sum, ms) => sum + ms, restMs);
    if (Number.isNaN(leftMs)) return "";
    return leftMs < 60_000 ? "less than a minute left" : `${Math.round(leftMs / 60_000)} min left`;
  }
}
