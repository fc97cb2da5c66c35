/** So many events are counted in about a millisecond. */
const MAX_KEPT = 1_024;

type Count = (event: unknown) => void;

/** Events that are kept as they come, and counted together. */
export class KeptEvents {
  #events: unknown[] = [];
  #counts: Count[] = [];

  keep(event: unknown, count: Count): void {
    this.#events.push(event);
    this.#counts.push(count);
    if (this.#events.length >= MAX_KEPT) this.countAll();
  }

  countAll(): void {
    const [events, counts] = [this.#events, this.#counts];
    // A function of the user that is called below may use locks, too.
    this.#events = [];
    this.#counts = [];
    events.forEach((event, index) => {
      counts[index]?.(event);
    });
  }
}
