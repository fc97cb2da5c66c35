/** Promises that run in the background and that a `close` has to wait for. */
export class WorkUnderWay {
  readonly #works = new Set<Promise<unknown>>();

  get size(): number {
    return this.#works.size;
  }

  /** Returns `work` itself. A caller that does not await it hears nothing of its failure. */
  add<T>(work: Promise<T>): Promise<T> {
    this.#works.add(work);
    const end = (): void => void this.#works.delete(work);
    // rule: host-sees-no-rejection
    work.then(end, end);
    return work;
  }

  /** Resolves when all work under way now has ended, in success or failure. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#works);
  }
}
