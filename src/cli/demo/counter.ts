/**
 * The number that the workers share. They read and write it in two steps, so two workers at a time
 * lose an update. It refuses a token below the highest that it has seen: fencing takes no more.
 */
export class Counter {
  value = 0;
  /** Writes that were accepted. */
  writes = 0;
  #highest = 0n;

  /** A worker announces its token before it reads. False: a higher token was announced before. */
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
