import type { Claim } from "../contract/store.js";
import { LoneMap } from "../rules/lone-map.js";
import type { Space } from "../rules/name.js";
import type { Hold } from "./hold.js";

type LockId = Pick<Claim, "space" | "name">;

const NONE: readonly Hold[] = [];

/** The holds of one client, by the names of their locks: most names have one. */
export class HoldsByName {
  /** The hold with the highest token of each name; each leads to the next older one. */
  readonly #newest: Readonly<Record<Space, LoneMap<string, Hold>>> = {
    lock: new LoneMap(),
    election: new LoneMap(),
    once: new LoneMap(),
  };

  /** The holds of a name, the newest first, as they are now: a loss may end others. */
  at({ space, name }: LockId): readonly Hold[] {
    const newest = this.#newest[space].get(name);
    if (!newest) return NONE;
    const holds: Hold[] = [];
    for (let next: Hold | undefined = newest; next; next = next.older) holds.push(next);
    return holds;
  }

  add(hold: Hold): void {
    const { space, name } = hold.grant.claim;
    let newer: Hold | undefined;
    let next = this.#newest[space].get(name);
    for (; next && next.token > hold.token; next = next.older) newer = next;
    hold.older = next;
    if (newer) newer.older = hold;
    else this.#newest[space].set(name, hold);
  }

  remove(hold: Hold): void {
    const { space, name } = hold.grant.claim;
    const newest = this.#newest[space];
    let newer = newest.get(name);
    if (newer === hold) {
      if (hold.older) newest.set(name, hold.older);
      else newest.delete(name);
    }
    while (newer && newer.older !== hold) newer = newer.older;
    if (newer) newer.older = hold.older;
    hold.older = undefined;
  }
}
