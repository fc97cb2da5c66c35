import type { Traits } from "../store.js";
import type { Context } from "./context.js";
import type { Harness } from "./harness.js";

/** One thing that every store has to do, where its traits promise it. */
export interface Behaviour {
  /** A sentence about the store. */
  readonly title: string;
  /** It keeps the event loop busy, so others in the same process would fail for it. */
  readonly alone?: boolean;
  /** Why it does not apply, or null when it does. */
  needs?(traits: Traits, harness: Harness): string | null;
  run(context: Context): Promise<void>;
}
