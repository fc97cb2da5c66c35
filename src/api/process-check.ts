import { monitorEventLoopDelay } from "node:perf_hooks";
import { type Check, checksOver, note, ok, warning } from "../contract/checks.js";
import { renewAfterMs } from "../rules/renewal-pace.js";

/** How long the event loop is measured, and how often its delay is sampled. */
export const MEASURED_MS = 500;
const SAMPLE_MS = 10;

/** The state of this process. */
export interface ProcessFacts {
  /** 99 of 100 timers of this process are at most this late. */
  readonly loopDelayMs: number;
  /** A thread of its own renews the leases of this process. */
  readonly hasRenewer: boolean;
}

const check = checksOver<ProcessFacts>();

export const processChecks: readonly Check<ProcessFacts>[] = [
  check("process/event-loop", ["loopDelayMs", "hasRenewer"], (facts, ttlMs) => {
    const { loopDelayMs, hasRenewer } = facts;
    const seen = `Timers of this process are up to ${Math.ceil(loopDelayMs)} ms late (p99)`;
    const everyMs = Math.round(renewAfterMs(ttlMs));
    const why = `A blocked event loop sends renewals late, which are due every ${everyMs} ms.`;
    const remedy =
      "Move long computations to a worker thread, connect with thread: true, " +
      "or choose a longer ttlMs.";
    if (hasRenewer) return ok(`${seen}; a thread renews the leases.`);
    if (loopDelayMs >= renewAfterMs(ttlMs)) {
      return warning(`${seen}, more than a third of the ttl.`, why, remedy);
    }
    if (loopDelayMs >= renewAfterMs(ttlMs) / 3) {
      return note(`${seen}, more than a ninth of the ttl.`, why, remedy);
    }
    return ok(`${seen}.`);
  }),
];

/** Measures from now on; the function that it returns ends the measurement. */
export function measureLoopDelay(): () => number {
  const histogram = monitorEventLoopDelay({ resolution: SAMPLE_MS });
  histogram.enable();
  return () => {
    histogram.disable();
    // A sample is the time between two timers: their interval is no delay.
    return Math.max(0, histogram.percentile(99) / 1e6 - SAMPLE_MS);
  };
}
