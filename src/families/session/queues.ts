import { keyOf } from "../../rules/name.js";
import type { HeldEntries } from "./held-entries.js";
import { Queue, type Waiter } from "./queue.js";
import type { Listing, LockId, Sequencer } from "./sequencer.js";

const GLANCE_MS = 1_000;

/** The queues in which waiters of this process are. */
export class Queues {
  readonly #sequencer: Sequencer;
  readonly #held: HeldEntries;
  readonly #queues = new Map<string, Queue>();
  readonly #glances = new Map<string, Promise<Listing | null>>();

  constructor(sequencer: Sequencer, held: HeldEntries) {
    this.#sequencer = sequencer;
    this.#held = held;
  }

  /** Undefined if no waiter of this process is in the queue. */
  at({ space, name }: LockId): Queue | undefined {
    return this.#queues.get(keyOf(space, name));
  }

  /** Returns the queue for a waiter that is about to join it. */
  of({ entry: { lock } }: Waiter): Queue {
    const key = keyOf(lock.space, lock.name);
    const queue = this.#queues.get(key) ?? new Queue(lock, this.#sequencer, this.#held);
    this.#queues.set(key, queue);
    return queue;
  }

  remove(waiter: Waiter): void {
    const { space, name } = waiter.entry.lock;
    const key = keyOf(space, name);
    const queue = this.#queues.get(key);
    queue?.remove(waiter);
    if (queue?.size === 0) this.#queues.delete(key);
  }

  /** Lists the queue with texts; null if the store is slow. Concurrent callers share a request. */
  glance(lock: LockId): Promise<Listing | null> {
    const key = keyOf(lock.space, lock.name);
    let glance = this.#glances.get(key);
    if (!glance) {
      glance = this.#sequencer
        .list(lock, "texts", GLANCE_MS)
        .catch(() => null)
        .finally(() => this.#glances.delete(key));
      this.#glances.set(key, glance);
    }
    return glance;
  }

  close(): void {
    for (const queue of this.#queues.values()) queue.close();
    this.#queues.clear();
  }
}
