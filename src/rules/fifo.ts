/** A place in a line; it knows its neighbours, so that it can leave from anywhere in O(1). */
export interface Place<T> {
  readonly value: T;
  before: Place<T> | null;
  behind: Place<T> | null;
}

/** A line of values, first come first. */
export class Fifo<T> {
  #first: Place<T> | null = null;
  #last: Place<T> | null = null;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get first(): T | undefined {
    return this.#first?.value;
  }

  push(value: T): Place<T> {
    const place: Place<T> = { value, before: null, behind: null };
    this.add(place);
    return place;
  }

  /** A value that is its own place costs no object. The place must be in no line. */
  add(place: Place<T>): void {
    place.before = this.#last;
    place.behind = null;
    if (this.#last) this.#last.behind = place;
    else this.#first = place;
    this.#last = place;
    this.#size += 1;
  }

  shift(): T | undefined {
    const place = this.#first;
    if (place) this.remove(place);
    return place?.value;
  }

  /** The place must be in this line. */
  remove(place: Place<T>): void {
    const { before, behind } = place;
    if (before) before.behind = behind;
    else this.#first = behind;
    if (behind) behind.before = before;
    else this.#last = before;
    this.#size -= 1;
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let place = this.#first; place; place = place.behind) yield place.value;
  }
}
