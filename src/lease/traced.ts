import type { AcquireEvent } from "../events.js";
import { events } from "../publish.js";
import type { Store } from "../store.js";
import type { Outcome, Target } from "./client.js";

/**
 * Publishes one acquisition on `holdfast:acquire`. The outcome goes past the channel and not
 * through it: a lease carries secrets, and what is published ends up in logs.
 */
export async function traced(
  store: Store,
  { space, name, mode }: Target,
  signal: AbortSignal | undefined,
  mayWait: boolean,
  ask: () => Promise<Outcome>,
): Promise<Outcome> {
  const event: AcquireEvent = { name, space, store: store.name, kind: mode };
  const startMs = store.port.clock.nowMs();
  let outcome: Outcome | undefined;
  await events.acquire.tracePromise(async () => {
    try {
      outcome = await ask();
      event.outcome = outcome.type;
      if (outcome.type === "granted") event.token = outcome.lease.token;
      else if (signal?.aborted) event.outcome = "aborted";
      else if (mayWait && !outcome.mark) event.outcome = "timeout";
    } catch (error) {
      event.outcome = signal?.aborted ? "aborted" : "error";
      throw error;
    } finally {
      event.waitedMs = store.port.clock.nowMs() - startMs;
    }
  }, event);
  return outcome as Outcome;
}
