import { joined, NO_LIMIT, type Occupancy, VACANT } from "../../rules/fits.js";
import type { Holder } from "../../rules/ledger-state.js";
import { Heap, type HeapItem } from "../../time/heap.js";

interface Entry extends HeapItem {
  readonly holder: Holder;
}

/** The shared holders of one name: found by owner, ordered by expiry, known in sum. */
export class SharedHolders {
  readonly #entries = new Map<string, Entry>();
  readonly #byExpiry = new Heap<Entry>((a, b) => expiresBefore(a.holder, b.holder));
  /** How many holders came with each limit: only a deploy makes them differ. */
  readonly #limits = new Map<number, number>();
  #occupancy: Occupancy = VACANT;

  get occupancy(): Occupancy {
    return this.#occupancy;
  }

  get(owner: string): Holder | undefined {
    return this.#entries.get(owner)?.holder;
  }

  *all(): Iterable<Holder> {
    for (const entry of this.#entries.values()) yield entry.holder;
  }

  nextToExpire(): Holder | undefined {
    return this.#byExpiry.peek()?.holder;
  }

  add(holder: Holder): void {
    const entry = { holder, heapIndex: -1 };
    this.#entries.set(holder.owner, entry);
    this.#byExpiry.push(entry);
    this.#limits.set(holder.limit, (this.#limits.get(holder.limit) ?? 0) + 1);
    this.#occupancy = joined(this.#occupancy, holder);
  }

  update(holder: Holder): void {
    const entry = this.#entries.get(holder.owner);
    if (entry) this.#byExpiry.update(entry);
  }

  remove(holder: Holder): void {
    const entry = this.#entries.get(holder.owner);
    if (!entry) return;
    this.#entries.delete(holder.owner);
    this.#byExpiry.remove(entry);
    const others = (this.#limits.get(holder.limit) ?? 1) - 1;
    if (others > 0) this.#limits.set(holder.limit, others);
    else this.#limits.delete(holder.limit);
    const { count, weight } = this.#occupancy;
    const limit = Math.min(NO_LIMIT, ...this.#limits.keys());
    this.#occupancy = { count: count - 1, exclusive: false, weight: weight - holder.weight, limit };
  }
}

/** Ties go to the older grant, so that every store names the same holder. */
function expiresBefore(a: Holder, b: Holder): boolean {
  return a.expiryUs < b.expiryUs || (a.expiryUs === b.expiryUs && a.token < b.token);
}
