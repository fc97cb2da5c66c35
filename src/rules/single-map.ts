/**
 * A map for entries that come and go. It avoids two costs of a `Map`:
 *
 * A `Map` makes a new table each time its last entry is deleted. Here the only entry takes no
 * table.
 *
 * When V8 replaces the table of a `Map`, the old table still leads to its entries and to the new
 * table. Where an old table has reached the old space, values live on after they are deleted: the
 * collector copies them, until the next full collection. Here a table leads only to slots, and a
 * slot is emptied.
 */
export class SingleMap<K, V extends object> {
  /** The entry that came into the empty map, until it is deleted. */
  #key: K | undefined;
  #value: V | undefined;
  readonly #others = new Map<K, Slot<V>>();

  get size(): number {
    return this.#others.size + (this.#value ? 1 : 0);
  }

  get(key: K): V | undefined {
    if (this.#value && key === this.#key) return this.#value;
    // An empty map would still compute the hash of the key.
    return this.#others.size === 0 ? undefined : this.#others.get(key)?.value;
  }

  set(key: K, value: V): void {
    if (this.#value ? key === this.#key : this.#others.size === 0) {
      this.#key = key;
      this.#value = value;
      return;
    }
    // An entry beside others stays among them: no key has two places.
    const slot = this.#others.get(key);
    if (slot) slot.value = value;
    else this.#others.set(key, { value });
  }

  delete(key: K): void {
    if (this.#value && key === this.#key) {
      this.#key = undefined;
      this.#value = undefined;
      return;
    }
    const slot = this.#others.get(key);
    if (!slot) return;
    slot.value = undefined;
    this.#others.delete(key);
  }

  *values(): Iterable<V> {
    if (this.#value) yield this.#value;
    for (const { value } of this.#others.values()) if (value) yield value;
  }
}

interface Slot<V> {
  /** Undefined after the entry was deleted. */
  value: V | undefined;
}
