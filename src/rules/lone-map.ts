/**
 * A map whose only entry takes no table: for entries that mostly come and go one at a time. A `Map`
 * makes a new table each time its last entry is deleted, and that costs more than its other work.
 */
export class LoneMap<K, V extends object> {
  /** The entry that came into the empty map, until it is deleted. */
  #key: K | undefined;
  #value: V | undefined;
  readonly #others = new Map<K, V>();

  get size(): number {
    return this.#others.size + (this.#value ? 1 : 0);
  }

  get(key: K): V | undefined {
    if (this.#value && key === this.#key) return this.#value;
    // An empty map would still compute the hash of the key.
    return this.#others.size === 0 ? undefined : this.#others.get(key);
  }

  set(key: K, value: V): void {
    // An entry beside others stays among them: no key has two places.
    const isLone = this.#value ? key === this.#key : this.#others.size === 0;
    if (!isLone) return void this.#others.set(key, value);
    this.#key = key;
    this.#value = value;
  }

  delete(key: K): void {
    if (!this.#value || key !== this.#key) return void this.#others.delete(key);
    this.#key = undefined;
    this.#value = undefined;
  }

  *values(): Iterable<V> {
    if (this.#value) yield this.#value;
    yield* this.#others.values();
  }
}
