import type { StoreError } from "../errors.js";
import type { Store } from "../store.js";
import { within } from "../time/timers.js";

/** How long a store may look for the reason of a failure. */
const EXPLAIN_MS = 1_000;

/** The failure of a store that did not answer, with the reason where the store finds one. */
export async function explain(store: Store, error: StoreError): Promise<StoreError> {
  if (!store.explain) return error;
  return within(store.port.timers, EXPLAIN_MS, store.explain(error)).catch(() => error);
}
