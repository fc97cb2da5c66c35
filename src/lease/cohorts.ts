import type { Store } from "../contract/store.js";
import { LoneMap } from "../rules/lone-map.js";
import type { Space } from "../rules/name.js";
import type { Call } from "./call.js";
import type { Enclosing, Target } from "./call-options.js";
import { areEqual, Cohort } from "./cohort.js";
import type { Keeper } from "./keeper.js";
import type { Releases } from "./releases.js";

/** The space whose calls take turns. */
const TURNS_IN: Space = "lock";

/** The cohorts of one client, one for each name at which calls take turns, and the lone calls. */
export class Cohorts {
  readonly store: Store;
  readonly keeper: Keeper;
  readonly releases: Releases;
  /** By name alone: calls take turns in one space. */
  readonly #byName = new LoneMap<string, Cohort | Call>();

  constructor(store: Store, keeper: Keeper, releases: Releases) {
    this.store = store;
    this.keeper = keeper;
    this.releases = releases;
  }

  /**
   * The cohort that a call joins. Null where the call has a grant of its own: no other call of this
   * process is at the lock, or the call cannot take turns with those that are.
   */
  for(call: Call): Cohort | null {
    const { target, options, wait } = call;
    if (!this.#takesTurns(call)) return null;
    const there = this.#byName.get(target.name);
    if (!there) {
      call.isLone = true;
      this.#byName.set(target.name, call);
      return null;
    }
    if (there instanceof Cohort) return there.takes(options, wait) ? there : null;
    const isKnown = wait !== null || there.lease !== null;
    if (!isKnown || !areEqual(options, there.options)) return null;
    const cohort = Cohort.behind(there, this);
    this.#byName.set(target.name, cohort);
    return cohort;
  }

  remove({ name }: Target): void {
    this.#byName.delete(name);
  }

  /** The runs around calls that wait for a turn, by the name they wait for. */
  *waits(): Iterable<{ readonly name: string; readonly inside: Iterable<Enclosing> }> {
    for (const there of this.#byName.values()) {
      if (there instanceof Cohort) yield { name: there.name, inside: there.enclosing() };
    }
  }

  #takesTurns({ target, options }: Call): boolean {
    return (
      options.fairness === "bounded" &&
      options.cohortLimit > 1 &&
      options.renew &&
      !options.transferable &&
      options.maxHoldMs === Number.POSITIVE_INFINITY &&
      target.mode === "exclusive" &&
      target.space === TURNS_IN &&
      this.store.traits.tokenSpan
    );
  }
}
