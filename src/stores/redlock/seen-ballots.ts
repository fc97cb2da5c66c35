const MOST_NAMES = 10_000;

/**
 * The highest ballot that this client has seen of a name, where that is ahead of its clock: the
 * next proposal has to be above it. What the clock has passed is of no use any more.
 */
export class SeenBallots {
  readonly #ballots = new Map<string, number>();

  of(key: string): number {
    return this.#ballots.get(key) ?? 0;
  }

  note(key: string, ballot: number, wallUs: number): void {
    const highest = Math.max(ballot, this.of(key));
    if (highest < wallUs) {
      this.#ballots.delete(key);
      return;
    }
    this.#ballots.set(key, highest);
    if (this.#ballots.size <= MOST_NAMES) return;
    for (const [name, seen] of this.#ballots) if (seen < wallUs) this.#ballots.delete(name);
    // A ballot that is forgotten costs a second round, no more.
    if (this.#ballots.size > MOST_NAMES) this.#ballots.clear();
  }
}
