import { keyOf } from "../../rules/name.js";
import type { HeldEntries } from "./held-entries.js";
import { Queue, type Waiter } from "./queue.js";
import type { Listing, LockId, Sequencer } from "./sequencer.js";

/** The queues that waiters of this process stand in. */
export class Queues {
  readonly #sequencer: Sequencer;
  readonly #held: HeldEntries;
  readonly #queues = new Map<string, Queue>();

  constructor(sequencer: Sequencer, held: HeldEntries) {
    this.#sequencer = sequencer;
    this.#held = held;
  }

  /** Undefined where no waiter of this process stands in the queue. */
  at({ space, name }: LockId): Queue | undefined {
    return this.#queues.get(keyOf(space, name));
  }

  /** The entry of the waiter is in the listing. */
  add(waiter: Waiter, listing: Listing): void {
    const { lock } = waiter.entry;
    const key = keyOf(lock.space, lock.name);
    const queue = this.#queues.get(key) ?? new Queue(lock, this.#sequencer, this.#held);
    this.#queues.set(key, queue);
    queue.add(waiter, listing);
  }

  remove(waiter: Waiter): void {
    const { space, name } = waiter.entry.lock;
    const key = keyOf(space, name);
    const queue = this.#queues.get(key);
    queue?.remove(waiter);
    if (queue?.size === 0) this.#queues.delete(key);
  }

  close(): void {
    for (const queue of this.#queues.values()) queue.close();
    this.#queues.clear();
  }
}
