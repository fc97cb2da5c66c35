import { assert } from "../../errors/assert.js";
import type { Moment } from "../../families/session/sequencer.js";

/**
 * A moment of ZooKeeper: the number of a transaction, which rises with every write. An event of a
 * watch has no number. It happened after the reply that set the watch: `isLater` says so.
 */
export class Zxid implements Moment {
  readonly number: bigint;
  readonly #isLater: boolean;

  constructor(number: bigint, isLater = false) {
    this.number = number;
    this.#isLater = isLater;
  }

  /** A moment after this one, and not after any transaction that followed. */
  get later(): Zxid {
    return new Zxid(this.number, true);
  }

  isBefore(other: Moment): boolean {
    const { number, isLater } = zxidOf(other).#parts;
    return this.number < number || (this.number === number && !this.#isLater && isLater);
  }

  get #parts(): { readonly number: bigint; readonly isLater: boolean } {
    return { number: this.number, isLater: this.#isLater };
  }
}

export function zxidOf(moment: Moment): Zxid {
  assert(moment instanceof Zxid, "a moment comes back to the store that told it");
  return moment;
}
