import type { Options } from "../options.js";
import { keyOf } from "../rules/name.js";
import type { Store } from "../store.js";
import type { Enclosing, Target } from "./call-options.js";
import { Cohort } from "./cohort.js";
import type { Keeper } from "./keeper.js";
import type { Releases } from "./releases.js";

/** The cohorts of one client, one for each name at which calls take turns. */
export class Cohorts {
  readonly store: Store;
  readonly keeper: Keeper;
  readonly releases: Releases;
  readonly #byKey = new Map<string, Cohort>();

  constructor(store: Store, keeper: Keeper, releases: Releases) {
    this.store = store;
    this.keeper = keeper;
    this.releases = releases;
  }

  /** The cohort that a call may join; null where the call must have a grant of its own. */
  for(target: Target, options: Options): Cohort | null {
    if (!this.#takesTurns(target, options)) return null;
    const key = keyOf(target.space, target.name);
    let cohort = this.#byKey.get(key);
    if (!cohort) {
      cohort = new Cohort(key, target, options, this);
      this.#byKey.set(key, cohort);
    }
    return cohort;
  }

  /** A call beside the cohort of this lock was granted it with this token. */
  onGrantBeside(target: Target, token: bigint): void {
    if (this.#byKey.size > 0) this.#byKey.get(keyOf(target.space, target.name))?.outdate(token);
  }

  remove(key: string): void {
    this.#byKey.delete(key);
  }

  /** The runs around calls that wait for a turn, by the name they wait for. */
  *waits(): Iterable<{ readonly name: string; readonly inside: Iterable<Enclosing> }> {
    for (const cohort of this.#byKey.values()) {
      yield { name: cohort.name, inside: cohort.enclosing() };
    }
  }

  #takesTurns(target: Target, options: Options): boolean {
    return (
      options.fairness === "bounded" &&
      options.cohortLimit > 1 &&
      options.renew &&
      !options.transferable &&
      options.maxHoldMs === Number.POSITIVE_INFINITY &&
      target.mode === "exclusive" &&
      target.space === "lock" &&
      this.store.traits.tokenSpan
    );
  }
}
