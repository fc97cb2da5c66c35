import { present } from "../assert.js";
import type { AcquireEvent } from "../events.js";
import { withJson } from "../json.js";
import { describe, events } from "../publish.js";
import type { HolderView, Store } from "../store.js";
import type { CallOptions, Target } from "./call-options.js";
import type { LeaseResult } from "./lease.js";

/**
 * Publishes one acquisition on `holdfast:acquire`. The outcome goes past the channel and not
 * through it: a lease carries secrets, and what is published ends up in logs.
 */
export async function traced(
  { store, target, options, mayWait }: TracedCall,
  ask: (options: CallOptions) => Promise<LeaseResult>,
): Promise<LeaseResult> {
  const { signal } = options;
  const event: AcquireEvent = withJson(describe(store, target.kind, target));
  const startMs = store.port.clock.nowMs();
  let result: LeaseResult | undefined;
  await events.acquire.tracePromise(async () => {
    try {
      result = await ask({ ...options, event });
      event.outcome = result.type;
      if (result.type === "granted") event.token = result.token;
      else if (signal?.aborted) event.outcome = "aborted";
      else if (mayWait && !result.mark) event.outcome = "timeout";
      if (result.type === "busy") event.holder ??= viewOf(result.holder);
    } catch (error) {
      event.outcome = signal?.aborted ? "aborted" : "error";
      throw error;
    } finally {
      event.waitedMs = store.port.clock.nowMs() - startMs;
    }
  }, event);
  return present(result, "an acquisition that did not throw has a result");
}

interface TracedCall {
  readonly store: Store;
  readonly target: Target;
  readonly options: CallOptions;
  readonly mayWait: boolean;
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
