/**
 * The order in which this process asks for the entries of one queue: that of the calls.
 *
 * A store may apply two requests that are under way together in either order. So the request for an
 * entry is sent when the one before it has been answered, or is not wanted any more. That is also
 * the quickest way through a crowd: each of a thousand requests sent together would wait for the
 * listings of all others.
 */
import { Fifo, type Place } from "../../rules/fifo.js";
import { keyOf } from "../../rules/name.js";
import type { LockId } from "./sequencer.js";

class EntryLine extends Fifo<LinePlace> {
  /** When the store last answered a request of this line. */
  answeredMs: number = Number.NEGATIVE_INFINITY;
}

/** The position of one call in the line of its queue. */
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

  /** The position is the first one now. */
  begin(): void {
    this.#onTurn();
  }

  /** Resolves when the request may be sent, or is not wanted any more. */
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

  /** The request was answered, or is not wanted any more. */
  leave(): void {
    if (!this.#place) return;
    this.#line.remove(this.#place);
    this.#place = null;
    this.#onTurn();
    if (this.#line.size === 0) this.#onEmpty();
    else this.#line.first?.begin();
  }
}

/** The lines of this process, one for each queue in which entries are being asked for. */
export class EntryLines {
  readonly #lines = new Map<string, EntryLine>();

  join({ space, name }: LockId): LinePlace {
    const key = keyOf(space, name);
    const line = this.#lines.get(key) ?? new EntryLine();
    this.#lines.set(key, line);
    return new LinePlace(line, () => this.#lines.delete(key));
  }
}
