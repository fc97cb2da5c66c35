import { Fifo, type Place } from "../../rules/fifo.js";
import type { Waiter, WaitingClient } from "../../rules/ledger-state.js";
import { Heap, type HeapItem } from "../../time/heap.js";

interface Entry {
  readonly waiter: Waiter;
  readonly order: number;
}

interface Patience extends HeapItem {
  readonly line: Line;
}

/** The waiters of one client, first come first. */
class Line implements WaitingClient, HeapItem {
  readonly id: string;
  touchUs: number;
  readonly entries = new Fifo<Entry>();
  /** Its place among the lines by the end of their patience. */
  readonly patience: Patience = { line: this, heapIndex: -1 };
  goneUs: number;
  suspect = false;
  heapIndex = -1;

  constructor(id: string, { touchUs, goneUs }: { touchUs: number; goneUs: number }) {
    this.id = id;
    this.touchUs = touchUs;
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
 * The queue of one name: a line per client, and a heap of the lines by their first waiter. A
 * suspect client leaves the heap with its whole line in one step, and comes back into its old place
 * likewise.
 */
export class MemoryQueue {
  readonly #places = new Map<string, Place<Entry>>();
  readonly #lines = new Map<string, Line>();
  // rule: first-come-first-served
  readonly #ready = new Heap<Line>((a, b) => a.order < b.order);
  readonly #patience = new Heap<Patience>((a, b) => a.line.goneUs < b.line.goneUs);
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
    return this.#lines.get(id);
  }

  add(waiter: Waiter, liveness: { touchUs: number; goneUs: number }): void {
    let line = this.#lines.get(waiter.client);
    if (!line) {
      line = new Line(waiter.client, liveness);
      this.#lines.set(line.id, line);
      this.#patience.push(line.patience);
    }
    line.touchUs = Math.max(line.touchUs, liveness.touchUs);
    line.goneUs = Math.max(line.goneUs, liveness.goneUs);
    this.#patience.update(line.patience);
    this.#places.set(waiter.owner, line.entries.push({ waiter, order: this.#nextOrder++ }));
    if (line.heapIndex < 0 && !line.suspect) this.#ready.push(line);
  }

  remove(waiter: Waiter): void {
    const place = this.#places.get(waiter.owner);
    const line = this.#lines.get(waiter.client);
    if (!place || !line) return;
    this.#places.delete(waiter.owner);
    const wasFirst = line.entries.first === place.value;
    line.entries.remove(place);
    if (line.waiting === 0) this.#close(line);
    else if (wasFirst && !line.suspect) this.#ready.update(line);
  }

  update(client: WaitingClient): void {
    const line = this.#lines.get(client.id);
    if (!line) return;
    this.#patience.update(line.patience);
    if (line.suspect) this.#ready.remove(line);
    else if (line.heapIndex < 0) this.#ready.push(line);
  }

  silent(nowUs: number): WaitingClient | undefined {
    const line = this.#patience.peek()?.line;
    return line && line.goneUs <= nowUs ? line : undefined;
  }

  drop(client: WaitingClient): void {
    const line = this.#lines.get(client.id);
    if (!line) return;
    for (const { waiter } of line.entries) this.#places.delete(waiter.owner);
    this.#close(line);
  }

  #close(line: Line): void {
    this.#lines.delete(line.id);
    this.#ready.remove(line);
    this.#patience.remove(line.patience);
  }
}
