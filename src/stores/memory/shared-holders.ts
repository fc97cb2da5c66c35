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
  /** The holders of each client that are not confirmed. */
  readonly #offers = new Map<string, Set<Holder>>();
  /** In the order of their tokens, with some that have left. */
  #byToken: Holder[] = [];
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

  with(token: number): Holder | undefined {
    let [low, high] = [0, this.#byToken.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#byToken[middle] as Holder).token <= token) low = middle + 1;
      else high = middle;
    }
    // Spans do not overlap: no other holder can have the token.
    const holder = this.#byToken[low - 1];
    if (!holder || token >= holder.token + holder.span) return undefined;
    return this.get(holder.owner) === holder ? holder : undefined;
  }

  /** The first of the client's holders that are not confirmed. */
  offers(client: string, most: number): Holder[] {
    const found: Holder[] = [];
    for (const holder of this.#offers.get(client) ?? []) {
      if (found.length === most) break;
      found.push(holder);
    }
    return found;
  }

  add(holder: Holder): void {
    const entry = { holder, heapIndex: -1 };
    this.#entries.set(holder.owner, entry);
    this.#byExpiry.push(entry);
    this.#limits.set(holder.limit, (this.#limits.get(holder.limit) ?? 0) + 1);
    this.#occupancy = joined(this.#occupancy, holder);
    this.#byToken.push(holder);
    if (holder.confirmed) return;
    const offers = this.#offers.get(holder.client);
    if (offers) offers.add(holder);
    else this.#offers.set(holder.client, new Set([holder]));
  }

  update(holder: Holder): void {
    const entry = this.#entries.get(holder.owner);
    if (entry) this.#byExpiry.update(entry);
    if (holder.confirmed) this.#settle(holder);
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
    this.#settle(holder);
    // Half of them have left: one look at all of them for as many that left.
    if (this.#byToken.length > 2 * count) {
      this.#byToken = this.#byToken.filter((one) => this.get(one.owner) === one);
    }
  }

  /** It is no offer any more. */
  #settle(holder: Holder): void {
    const offers = this.#offers.get(holder.client);
    if (offers?.delete(holder) && offers.size === 0) this.#offers.delete(holder.client);
  }
}

/** Ties go to the older grant, so that every store names the same holder. */
function expiresBefore(a: Holder, b: Holder): boolean {
  return a.expiryUs < b.expiryUs || (a.expiryUs === b.expiryUs && a.token < b.token);
}
