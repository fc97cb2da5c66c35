import type { AcquireEvent } from "../events.js";
import { withJson } from "../json.js";
import { describe, events } from "../publish.js";
import type { HolderView, Store } from "../store.js";
import type { Outcome, Target } from "./client.js";
import type { CallOptions } from "./cohort.js";

/**
 * Publishes one acquisition on `holdfast:acquire`. The outcome goes past the channel and not
 * through it: a lease carries secrets, and what is published ends up in logs.
 */
export async function traced(
  store: Store,
  target: Target,
  options: CallOptions,
  mayWait: boolean,
  ask: (options: CallOptions) => Promise<Outcome>,
): Promise<Outcome> {
  const { signal } = options;
  const event: AcquireEvent = withJson(describe(store, target.kind, target));
  const startMs = store.port.clock.nowMs();
  let outcome: Outcome | undefined;
  await events.acquire.tracePromise(async () => {
    try {
      outcome = await ask({ ...options, event });
      event.outcome = outcome.type;
      if (outcome.type === "granted") event.token = outcome.lease.token;
      else if (signal?.aborted) event.outcome = "aborted";
      else if (mayWait && !outcome.mark) event.outcome = "timeout";
      if (outcome.type === "busy") event.holder ??= viewOf(outcome.holder);
    } catch (error) {
      event.outcome = signal?.aborted ? "aborted" : "error";
      throw error;
    } finally {
      event.waitedMs = store.port.clock.nowMs() - startMs;
    }
  }, event);
  return outcome as Outcome;
}

/** Writes the holder and the place into the event of a call when it is queued, and not later. */
export function noteQueued(
  event: AcquireEvent | undefined,
  holder: HolderView | null,
  ahead: number | null,
): void {
  if (!event || event.ahead !== undefined) return;
  event.holder = viewOf(holder);
  event.ahead = ahead;
}

function viewOf(holder: HolderView | null): HolderView | null {
  return holder && withJson({ ...holder });
}
