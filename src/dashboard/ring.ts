/** The newest items, at most `capacity` of them. */
export class Ring<T> {
  readonly #capacity: number;
  readonly #items: T[] = [];
  #start = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get last(): T | undefined {
    const { length } = this.#items;
    return length === 0 ? undefined : this.#items[(this.#start + length - 1) % length];
  }

  push(item: T): void {
    if (this.#items.length < this.#capacity) {
      this.#items.push(item);
      return;
    }
    this.#items[this.#start] = item;
    this.#start = (this.#start + 1) % this.#capacity;
  }

  /** Oldest first. */
  *[Symbol.iterator](): Generator<T, void> {
    yield* this.#items.slice(this.#start);
    yield* this.#items.slice(0, this.#start);
  }
}
