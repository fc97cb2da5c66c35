import { assert } from "../../assert.js";
import type { Moment } from "../sequencer/sequencer.js";

/** A revision of etcd: one counter for the whole cluster, which rises with every write. */
export class Revision implements Moment {
  readonly number: bigint;

  constructor(number: bigint | string) {
    this.number = BigInt(number);
  }

  isBefore(other: Moment): boolean {
    return this.number < revisionOf(other);
  }
}

export function revisionOf(moment: Moment): bigint {
  assert(moment instanceof Revision, "a moment comes back to the store that told it");
  return moment.number;
}
