/**
 * The names of the entries of one session within a queue: numbers that are used again.
 *
 * etcd keeps a deleted key until the history is compacted, and passes all such keys whenever the
 * queue is read: with a new name for each entry, a busy lock would become slower with every turn. A
 * number is used again only when its entry is gone and no request about it can be under way,
 * because a late copy of a delete would remove the next entry with that name. When that is not
 * certain, a new era begins, with names that were never used.
 */
export interface EntryNumber {
  readonly queue: string;
  readonly era: number;
  readonly number: number;
}

interface QueueNumbers {
  next: number;
  inUse: number;
  readonly free: number[];
}

export class EntryNumbers {
  #queues = new Map<string, QueueNumbers>();
  #era = 0;

  take(queue: string): EntryNumber {
    let numbers = this.#queues.get(queue);
    if (!numbers) {
      numbers = { next: 0, inUse: 0, free: [] };
      this.#queues.set(queue, numbers);
    }
    numbers.inUse += 1;
    const number = numbers.free.pop() ?? numbers.next++;
    return { queue, era: this.#era, number };
  }

  /** `isCertain`: the entry is gone, and no request about it can be under way. */
  giveBack({ queue, era, number }: EntryNumber, isCertain: boolean): void {
    if (era !== this.#era) return;
    if (!isCertain) {
      this.#era += 1;
      this.#queues = new Map();
      return;
    }
    const numbers = this.#queues.get(queue);
    if (!numbers) return;
    numbers.inUse -= 1;
    if (numbers.inUse === 0) this.#queues.delete(queue);
    else numbers.free.push(number);
  }
}

/** The last part of the entry's key. */
export function nameOf({ era, number }: EntryNumber): string {
  return `${era}-${number}`;
}
