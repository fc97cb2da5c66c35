import type { Store } from "../contract/store.js";
import type { RunEvent } from "../events/events.js";
import { describe, events } from "../events/publish.js";
import type { Target } from "../lease/request-options.js";
import { withJson } from "../rules/json.js";
import type { Releasable } from "./run-under.js";

type Body<L, T> = (lease: L) => T | Promise<T>;
type RunTarget = Omit<Target, "kind"> & { readonly kind: RunEvent["kind"] };

/** Calls `run` with a body, and publishes the call on `holdfast:run` if that has subscribers. */
export function tracedRun<L extends object, T, R>(
  store: Store,
  target: () => RunTarget,
  body: Body<L, T>,
  run: (body: Body<L, T>) => Promise<R>,
): Promise<R> {
  // If the body is not a function, `run` throws.
  const isTraced = events.run.hasSubscribers && typeof body === "function";
  return isTraced ? trace(store, target, body, run) : run(body);
}

/** Does not use `tracePromise`, which would add the value of the body to the event. */
async function trace<L extends object, T, R>(
  store: Store,
  target: () => RunTarget,
  body: Body<L, T>,
  run: (body: Body<L, T>) => Promise<R>,
): Promise<R> {
  const { kind, ...request } = target();
  const event: RunEvent = withJson({ ...describe(store, "mutex", request), kind });
  let own: Partial<Releasable> = {};
  const traced = async (lease: L): Promise<T> => {
    own = lease;
    if ("token" in lease) event.token = lease.token as bigint;
    event.outcome = "failed";
    const value = await body(lease);
    event.outcome = "done";
    return value;
  };
  let result: R | undefined;
  await events.run.tracePromise(async () => {
    event.outcome = "not_run" as NonNullable<RunEvent["outcome"]>;
    const whole = async (): Promise<void> => {
      result = await run(traced);
    };
    try {
      await (event.around ? event.around(whole) : whole());
    } catch (error) {
      // The body returned but the call rejects: `lead` lost its lease and was then aborted.
      if (own.loss || event.outcome === "done") event.outcome = "lost";
      throw error;
    }
  }, event);
  return result as R;
}
