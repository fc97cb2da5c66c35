import { Fifo, type Place } from "../../rules/fifo.js";
import type { Waiter, WaitingClient } from "../../rules/ledger-state.js";
import { Heap, type HeapItem } from "../../time/heap.js";

interface Entry {
  readonly waiter: Waiter;
  readonly order: number;
}

interface Patience extends HeapItem {
  readonly queue: ClientQueue;
}

/** The waiters of one client, first come first. */
class ClientQueue implements WaitingClient, HeapItem {
  readonly id: string;
  heartbeatUs: number;
  readonly entries = new Fifo<Entry>();
  /** Its place among the client queues by the end of their patience. */
  readonly patience: Patience = { queue: this, heapIndex: -1 };
  goneUs: number;
  unresponsive = false;
  heapIndex = -1;

  constructor(id: string, { heartbeatUs, goneUs }: { heartbeatUs: number; goneUs: number }) {
    this.id = id;
    this.heartbeatUs = heartbeatUs;
    this.goneUs = goneUs;
  }

  get waiting(): number {
    return this.entries.size;
  }

  get order(): number {
    return this.entries.first?.order ?? Number.POSITIVE_INFINITY;
  }
}

/**
 * The queue of one name: a queue for each client, and a heap of these by their first waiter. An
 * unresponsive client leaves the heap with all its waiters in one step, and comes back into its old
 * place likewise.
 */
export class MemoryQueue {
  readonly #places = new Map<string, Place<Entry>>();
  readonly #byClient = new Map<string, ClientQueue>();
  // rule: first-come-first-served
  readonly #ready = new Heap<ClientQueue>((a, b) => a.order < b.order);
  readonly #patience = new Heap<Patience>((a, b) => a.queue.goneUs < b.queue.goneUs);
  #nextOrder = 0;

  get size(): number {
    return this.#places.size;
  }

  head(): Waiter | undefined {
    return this.#ready.peek()?.entries.first?.waiter;
  }

  get(owner: string): Waiter | undefined {
    return this.#places.get(owner)?.value.waiter;
  }

  all(): Waiter[] {
    const entries = [...this.#places.values()].map((place) => place.value);
    return entries.sort((a, b) => a.order - b.order).map((entry) => entry.waiter);
  }

  client(id: string): WaitingClient | undefined {
    return this.#byClient.get(id);
  }

  add(waiter: Waiter, liveness: { heartbeatUs: number; goneUs: number }): void {
    let queue = this.#byClient.get(waiter.client);
    if (!queue) {
      queue = new ClientQueue(waiter.client, liveness);
      this.#byClient.set(queue.id, queue);
      this.#patience.push(queue.patience);
    }
    queue.heartbeatUs = Math.max(queue.heartbeatUs, liveness.heartbeatUs);
    queue.goneUs = Math.max(queue.goneUs, liveness.goneUs);
    this.#patience.update(queue.patience);
    this.#places.set(waiter.owner, queue.entries.push({ waiter, order: this.#nextOrder++ }));
    if (queue.heapIndex < 0 && !queue.unresponsive) this.#ready.push(queue);
  }

  remove(waiter: Waiter): void {
    const place = this.#places.get(waiter.owner);
    const queue = this.#byClient.get(waiter.client);
    if (!place || !queue) return;
    this.#places.delete(waiter.owner);
    const wasFirst = queue.entries.first === place.value;
    queue.entries.remove(place);
    if (queue.waiting === 0) this.#close(queue);
    else if (wasFirst && !queue.unresponsive) this.#ready.update(queue);
  }

  update(client: WaitingClient): void {
    const queue = this.#byClient.get(client.id);
    if (!queue) return;
    this.#patience.update(queue.patience);
    if (queue.unresponsive) this.#ready.remove(queue);
    else if (queue.heapIndex < 0) this.#ready.push(queue);
  }

  silent(nowUs: number): WaitingClient | undefined {
    const queue = this.#patience.peek()?.queue;
    return queue && queue.goneUs <= nowUs ? queue : undefined;
  }

  drop(client: WaitingClient): void {
    const queue = this.#byClient.get(client.id);
    if (!queue) return;
    for (const { waiter } of queue.entries) this.#places.delete(waiter.owner);
    this.#close(queue);
  }

  #close(queue: ClientQueue): void {
    this.#byClient.delete(queue.id);
    this.#ready.remove(queue);
    this.#patience.remove(queue.patience);
  }
}
