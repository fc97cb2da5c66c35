import type { Claim } from "../contract/store.js";
import type { Space } from "../rules/name.js";
import { SingleMap } from "../rules/single-map.js";
import type { HeldGrant } from "./held-grant.js";

type LockId = Pick<Claim, "space" | "name">;

const NONE: readonly HeldGrant[] = [];

/** The held grants of one client, by the names of their locks. Most names have one. */
export class HeldGrants {
  /** The grant with the highest token of each name; each refers to the next older one. */
  readonly #newest: Readonly<Record<Space, SingleMap<string, HeldGrant>>> = {
    lock: new SingleMap(),
    election: new SingleMap(),
    once: new SingleMap(),
  };

  /** A copy of the grants of a name, newest first: ending one may end others. */
  at({ space, name }: LockId): readonly HeldGrant[] {
    const newest = this.#newest[space].get(name);
    if (!newest) return NONE;
    const held: HeldGrant[] = [];
    for (let next: HeldGrant | undefined = newest; next; next = next.older) held.push(next);
    return held;
  }

  add(held: HeldGrant): void {
    const { space, name } = held.grant.claim;
    let newer: HeldGrant | undefined;
    let next = this.#newest[space].get(name);
    for (; next && next.token > held.token; next = next.older) newer = next;
    held.older = next;
    if (newer) newer.older = held;
    else this.#newest[space].set(name, held);
  }

  remove(held: HeldGrant): void {
    const { space, name } = held.grant.claim;
    const newest = this.#newest[space];
    let newer = newest.get(name);
    if (newer === held) {
      if (held.older) newest.set(name, held.older);
      else newest.delete(name);
    }
    while (newer && newer.older !== held) newer = newer.older;
    if (newer) newer.older = held.older;
    held.older = undefined;
  }
}
