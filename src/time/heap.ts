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
    // The last item mostly belongs near the bottom: there, few comparisons find its place.
    this.#rise(last, this.#sinkHole(index));
  }

  /** Puts an item whose rank has changed into its right place; nothing outside of this heap. */
  update(item: T): void {
    if (item.heapIndex < 0) return;
    this.#rise(item, this.#sinkHole(item.heapIndex));
  }

  values(): IterableIterator<T> {
    return this.#items.values();
  }

  #rise(item: T, from: number): void {
    const items = this.#items;
    const isBefore = this.#isBefore;
    let index = from;
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = items[above] as T;
      if (!isBefore(item, parent)) break;
      items[index] = parent;
      parent.heapIndex = index;
      index = above;
    }
    items[index] = item;
    item.heapIndex = index;
  }

  /** Lets a hole change places with the lesser item below it, down to the bottom. */
  #sinkHole(from: number): number {
    const items = this.#items;
    const isBefore = this.#isBefore;
    const size = items.length;
    let index = from;
    for (let below = 2 * index + 1; below < size; below = 2 * index + 1) {
      let child = items[below] as T;
      const right = items[below + 1];
      if (right !== undefined && isBefore(right, child)) {
        child = right;
        below += 1;
      }
      items[index] = child;
      child.heapIndex = index;
      index = below;
    }
    return index;
  }
}
