import { keyOf } from "../../rules/name.js";
import type { LockId } from "./sequencer.js";

/**
 * The entries of leases that this process holds. Local waiters do not watch these entries, because
 * the release of such a lease notifies them.
 */
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

/** The id comes first because, unlike a name, it contains no slash. */
function keyIn({ space, name }: LockId, id: string): string {
  return `${id}/${keyOf(space, name)}`;
}
