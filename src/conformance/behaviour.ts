import type { Traits } from "../contract/store.js";
import type { Context } from "./context.js";
import type { Harness } from "./harness.js";

/** One promise of the store contract. It binds every store whose traits include it. */
export interface Behaviour {
  /** A sentence about the store. */
  readonly title: string;
  /** Whether it blocks the event loop, so that other cases of this process would fail. */
  readonly alone?: boolean;
  /** Why the behaviour does not apply, or null when it does. */
  needs?(traits: Traits, harness: Harness): string | null;
  run(context: Context): Promise<void>;
}
