import type { Tombstone } from "../../rules/ledger-state.js";
import { Heap, type HeapItem } from "../../time/heap.js";

/** So many are dropped at once. */
const MAX_DROPPED = 64;

interface Entry extends HeapItem {
  readonly tombstone: Tombstone;
}

/** The tombstones of one name: found by owner, ordered by their end. */
export class Tombstones {
  readonly #entries = new Map<string, Entry>();
  readonly #byEnd = new Heap<Entry>((a, b) => a.tombstone.untilUs < b.tombstone.untilUs);

  get size(): number {
    return this.#entries.size;
  }

  get(owner: string, nowUs: number): Tombstone | undefined {
    const tombstone = this.#entries.get(owner)?.tombstone;
    return tombstone && tombstone.untilUs > nowUs ? tombstone : undefined;
  }

  put(tombstone: Tombstone): void {
    this.#remove(this.#entries.get(tombstone.owner));
    const entry = { tombstone, heapIndex: -1 };
    this.#entries.set(tombstone.owner, entry);
    this.#byEnd.push(entry);
  }

  drop(nowUs: number): void {
    for (let dropped = 0; dropped < MAX_DROPPED; dropped += 1) {
      const entry = this.#byEnd.peek();
      if (!entry || entry.tombstone.untilUs > nowUs) return;
      this.#remove(entry);
    }
  }

  #remove(entry: Entry | undefined): void {
    if (!entry) return;
    this.#entries.delete(entry.tombstone.owner);
    this.#byEnd.remove(entry);
  }
}
