/**
 * How the entries of one session are called within a line: by numbers that are used again.
 *
 * etcd keeps a deleted key until the history is compacted, and passes all of them whenever a line
 * is read: with a new name for each entry, a busy lock would become slower with every turn. A
 * number comes back only when its entry is gone and nothing about it can be under way: a late copy
 * of a delete would hit the next entry of that name. After anything less certain a new era begins,
 * with names that were never used.
 */
export interface EntryNumber {
  readonly line: string;
  readonly era: number;
  readonly number: number;
}

interface LineNumbers {
  next: number;
  inUse: number;
  readonly free: number[];
}

export class EntryNumbers {
  #lines = new Map<string, LineNumbers>();
  #era = 0;

  take(line: string): EntryNumber {
    let numbers = this.#lines.get(line);
    if (!numbers) {
      numbers = { next: 0, inUse: 0, free: [] };
      this.#lines.set(line, numbers);
    }
    numbers.inUse += 1;
    const number = numbers.free.pop() ?? numbers.next++;
    return { line, era: this.#era, number };
  }

  /** `isCertain`: its entry is gone, and nothing about it can be under way. */
  giveBack({ line, era, number }: EntryNumber, isCertain: boolean): void {
    if (era !== this.#era) return;
    if (!isCertain) {
      this.#era += 1;
      this.#lines = new Map();
      return;
    }
    const numbers = this.#lines.get(line);
    if (!numbers) return;
    numbers.inUse -= 1;
    if (numbers.inUse === 0) this.#lines.delete(line);
    else numbers.free.push(number);
  }
}

/** The last part of the entry's key. */
export function nameOf({ era, number }: EntryNumber): string {
  return `${era}-${number}`;
}
