/**
 * Sends the `enter` requests of this process for one queue in the order of the calls.
 *
 * A store may apply concurrent requests in either order. So each request waits until the one before
 * it has been answered or given up. With many waiters this is also faster: a thousand requests sent
 * at once would each wait for the listings of all others.
 */
import { Fifo, type Place } from "../../rules/fifo.js";
import { keyOf } from "../../rules/name.js";
import type { LockId } from "./sequencer.js";

class EntryLine extends Fifo<LinePlace> {
  /** When the store last answered a request of this line. */
  answeredMs: number = Number.NEGATIVE_INFINITY;
}

/** The position of one call in its line. */
export class LinePlace {
  readonly #line: EntryLine;
  readonly #onEmpty: () => void;
  #place: Place<LinePlace> | null;
  #onTurn: () => void = () => {};

  constructor(line: EntryLine, onEmpty: () => void) {
    this.#line = line;
    this.#onEmpty = onEmpty;
    this.#place = line.push(this);
  }

  /** Whether the request may be sent. */
  get isFirst(): boolean {
    return this.#line.first === this;
  }

  /** Called when this position becomes the first. */
  begin(): void {
    this.#onTurn();
  }

  /** Resolves when the request may be sent or is no longer wanted. */
  turn(): Promise<void> {
    return new Promise((resolve) => {
      this.#onTurn = resolve;
    });
  }

  /** When the store last answered a request of this line. */
  get answeredMs(): number {
    return this.#line.answeredMs;
  }

  onAnswered(nowMs: number): void {
    this.#line.answeredMs = nowMs;
  }

  /** Lets the next request go, because this one was answered or is no longer wanted. */
  leave(): void {
    if (!this.#place) return;
    this.#line.remove(this.#place);
    this.#place = null;
    this.#onTurn();
    if (this.#line.size === 0) this.#onEmpty();
    else this.#line.first?.begin();
  }
}

/** The lines of this process, one for each queue that has `enter` requests pending. */
export class EntryLines {
  readonly #lines = new Map<string, EntryLine>();

  join({ space, name }: LockId): LinePlace {
    const key = keyOf(space, name);
    const line = this.#lines.get(key) ?? new EntryLine();
    this.#lines.set(key, line);
    return new LinePlace(line, () => this.#lines.delete(key));
  }
}
