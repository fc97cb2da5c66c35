import { keyOf } from "../../rules/name.js";
import type { LockId } from "./sequencer.js";

/** The entries of leases of this process: the end of such a lease shows its waiters the queue. */
export class HeldEntries {
  readonly #keys = new Set<string>();

  has(lock: LockId, id: string): boolean {
    return this.#keys.has(keyIn(lock, id));
  }

  add(lock: LockId, id: string): void {
    this.#keys.add(keyIn(lock, id));
  }

  delete(lock: LockId, id: string): void {
    this.#keys.delete(keyIn(lock, id));
  }
}

/** The id goes first: unlike a name, it has no slash. */
function keyIn({ space, name }: LockId, id: string): string {
  return `${id}/${keyOf(space, name)}`;
}
