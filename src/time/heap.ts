/**
 * An item of a heap. It knows its own index, so that it can be moved or removed in O(log n).
 */
export interface HeapItem {
  /** Managed by the heap; -1 outside of one. */
  heapIndex: number;
}

/** A binary heap with the least item on top. */
export class Heap<T extends HeapItem> {
  readonly #items: T[] = [];
  readonly #isBefore: (a: T, b: T) => boolean;

  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore;
  }

  get size(): number {
    return this.#items.length;
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  push(item: T): void {
    this.#items.push(item);
    this.#rise(item, this.#items.length - 1);
  }

  remove(item: T): void {
    const index = item.heapIndex;
    if (index < 0) return;
    item.heapIndex = -1;
    const last = this.#items.pop() as T;
    if (last === item) return;
    this.#rise(last, index);
    this.#sink(last, last.heapIndex);
  }

  /** Puts an item whose rank has changed into its right place; nothing outside of this heap. */
  update(item: T): void {
    if (item.heapIndex < 0) return;
    this.#rise(item, item.heapIndex);
    this.#sink(item, item.heapIndex);
  }

  values(): IterableIterator<T> {
    return this.#items.values();
  }

  #rise(item: T, from: number): void {
    let index = from;
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = this.#items[above] as T;
      if (!this.#isBefore(item, parent)) break;
      this.#place(parent, index);
      index = above;
    }
    this.#place(item, index);
  }

  #sink(item: T, from: number): void {
    const size = this.#items.length;
    let index = from;
    for (;;) {
      let below = 2 * index + 1;
      if (below >= size) break;
      const right = this.#items[below + 1];
      if (right !== undefined && this.#isBefore(right, this.#items[below] as T)) below += 1;
      const child = this.#items[below] as T;
      if (!this.#isBefore(child, item)) break;
      this.#place(child, index);
      index = below;
    }
    this.#place(item, index);
  }

  #place(item: T, index: number): void {
    this.#items[index] = item;
    item.heapIndex = index;
  }
}
