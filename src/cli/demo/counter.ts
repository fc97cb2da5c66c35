/**
 * What the workers share: a number that is read and written in two steps, so that two at a time
 * lose an update. It refuses a token lower than the highest it has seen: that is all that fencing
 * takes.
 */
export class Counter {
  value = 0;
  /** Writes that were accepted. */
  writes = 0;
  #highest = 0n;

  /** A grant is announced to the counter before anything is read under it. */
  announce(token: bigint): boolean {
    if (token <= this.#highest) return false;
    this.#highest = token;
    return true;
  }

  write(value: number, token: bigint | null): boolean {
    if (token !== null && token < this.#highest) return false;
    this.value = value;
    this.writes += 1;
    return true;
  }

  get highest(): bigint {
    return this.#highest;
  }
}
