import type { HolderView, Store } from "../contract/store.js";
import type { AcquireEvent } from "../events/events.js";
import { describe, events } from "../events/publish.js";
import { withJson } from "../rules/json.js";
import type { LeaseResult } from "./lease.js";
import type { Target } from "./request-options.js";

/**
 * Publishes one acquisition on `holdfast:acquire`, with the steps of `tracePromise` but fewer
 * promises. The event never contains the lease, because a lease carries secrets and events end up
 * in logs.
 */
export function traced(
  request: TracedCall,
  ask: (event: AcquireEvent) => Promise<LeaseResult>,
): Promise<LeaseResult> {
  const { store, target } = request;
  const { start, end } = events.acquire;
  const event: AcquireEvent & { error?: unknown } = describe(store, target.kind, target);
  const startMs = store.runtime.clock.nowMs();
  return start.runStores(event, () => {
    const asked = ask(event).then(
      (result) => {
        noteResult(event, request, result);
        publishEnd(event, store, startMs);
        return result;
      },
      (error: unknown) => {
        event.outcome = request.signal?.aborted ? "aborted" : "error";
        event.error = error;
        publishEnd(event, store, startMs);
        throw error;
      },
    );
    end.publish(event);
    return asked;
  });
}

interface TracedCall {
  readonly store: Store;
  readonly target: Target;
  readonly signal: AbortSignal | undefined;
  readonly mayWait: boolean;
}

function noteResult(event: AcquireEvent, request: TracedCall, result: LeaseResult): void {
  event.outcome = result.type;
  if (result.type === "granted") event.token = result.token;
  else if (request.signal?.aborted) event.outcome = "aborted";
  else if (request.mayWait && !result.mark) event.outcome = "timeout";
  if (result.type === "busy") event.holder ??= viewOf(result.holder);
}

function publishEnd(event: AcquireEvent, store: Store, startMs: number): void {
  const { error, asyncStart, asyncEnd } = events.acquire;
  event.waitedMs = store.runtime.clock.nowMs() - startMs;
  if ("error" in event) error.publish(event);
  asyncStart.publish(event);
  asyncEnd.publish(event);
}

/** Records the holder and the queue position in the event when the request is first queued. */
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
