import { LeaseLostError } from "../errors.js";
import type { RunEvent } from "../events.js";
import { withJson } from "../json.js";
import type { Target } from "../lease/client.js";
import { describe, events } from "../publish.js";
import type { Store } from "../store.js";

type Body<L, T> = (lease: L) => T | Promise<T>;
type RunTarget = Omit<Target, "kind"> & { readonly kind: RunEvent["kind"] };

/** Calls `run` with a body, and publishes that on `holdfast:run` where somebody listens. */
export function tracedRun<L extends object, T, R>(
  store: Store,
  target: () => RunTarget,
  body: Body<L, T>,
  run: (body: Body<L, T>) => Promise<R>,
): Promise<R> {
  // What is no function is refused by `run` itself.
  const isTraced = events.run.hasSubscribers && typeof body === "function";
  return isTraced ? trace(store, target, body, run) : run(body);
}

/** The value goes past the channel and not through it: it belongs to the caller. */
async function trace<L extends object, T, R>(
  store: Store,
  target: () => RunTarget,
  body: Body<L, T>,
  run: (body: Body<L, T>) => Promise<R>,
): Promise<R> {
  const { kind, ...request } = target();
  const event: RunEvent = withJson({ ...describe(store, "mutex", request), kind });
  const traced = async (lease: L): Promise<T> => {
    if ("token" in lease) event.token = lease.token as bigint;
    event.outcome = "failed";
    const value = await body(lease);
    event.outcome = "done";
    return value;
  };
  let result: R | undefined;
  await events.run.tracePromise(async () => {
    event.outcome = "not_run";
    try {
      result = await run(traced);
    } catch (error) {
      if (event.outcome !== "not_run" && error instanceof LeaseLostError) event.outcome = "lost";
      throw error;
    }
  }, event);
  return result as R;
}
