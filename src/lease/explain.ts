import type { Store } from "../contract/store.js";
import type { StoreError } from "../errors/index.js";
import { within } from "../time/timers.js";

/** How long a store may search for the reason of a failure. */
const EXPLAIN_MS = 1_000;

const ONE_TURN_MS = 1;

/**
 * Adds the reason to the failure of a store that did not answer, if the store finds it in time.
 * `keepAlive` is false if no caller waits.
 */
export async function explain(
  store: Store,
  error: StoreError,
  limitMs: number = EXPLAIN_MS,
  keepAlive = true,
): Promise<StoreError> {
  if (!store.explain) return error;
  const { timers } = store.runtime;
  let explained: Promise<StoreError>;
  try {
    explained = store.explain(error);
  } catch {
    return error;
  }
  return (
    within(timers, limitMs, explained, keepAlive)
      // If the event loop was blocked, the reason may already have arrived.
      .catch(() => within(timers, ONE_TURN_MS, explained, keepAlive))
      .catch(() => error)
  );
}
