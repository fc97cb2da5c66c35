import { monitorEventLoopDelay } from "node:perf_hooks";
import {
  type Check,
  checksOver,
  type Examination,
  type ExamineOptions,
  note,
  ok,
  warning,
} from "../contract/examination.js";
import { unlessAborted } from "../lease/abort-listeners.js";
import type { LeaseClient } from "../lease/lease-client.js";
import { knownOptions } from "../options/known-options.js";
import { checkDuration } from "../options/options.js";
import { renewAfterMs } from "../rules/renewal-pace.js";
import { pause } from "../time/pause.js";
import { within } from "../time/timers.js";

/** How long the event loop is measured, and how often its delay is sampled. */
const MEASURED_MS = 500;
const SAMPLE_MS = 10;

/** The state of this process. */
interface ProcessFacts {
  /** The 99th percentile of the delay of timers in this process. */
  readonly loopDelayMs: number;
  /** Whether a separate thread renews the leases of this process. */
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

/** Limits `Store.examine`, in case a store breaks its own limit of ten seconds. */
const STORE_MS = 12_000;
const EXAMPLE = "must be an object: { ttlMs, signal }";

/** Examines the deployment of one client: its store and its process. */
export class Doctor {
  readonly #client: LeaseClient;
  readonly #ttlMs: number;

  constructor(client: LeaseClient, ttlMs: number) {
    this.#client = client;
    this.#ttlMs = ttlMs;
  }

  async examine(options?: ExamineOptions): Promise<Examination> {
    const given = knownOptions(options, ["ttlMs", "signal"], EXAMPLE);
    const ttlMs = checkDuration("ttlMs", given.ttlMs ?? this.#ttlMs, 1);
    given.signal?.throwIfAborted();
    const examination = this.#examine(ttlMs, given.signal ?? new AbortController().signal);
    return given.signal ? unlessAborted(examination, given.signal, () => {}) : examination;
  }

  async #examine(ttlMs: number, signal: AbortSignal): Promise<Examination> {
    const { store } = this.#client;
    const { timers } = store.runtime;
    const endMeasurement = measureLoopDelay();
    try {
      const asked = this.#client.look(async () => {
        const empty: Examination = { store: store.name, findings: [], failureCases: [] };
        if (!store.examine) return empty;
        return within(timers, STORE_MS, store.examine({ ttlMs, signal }));
      });
      const [examination] = await Promise.all([asked, pause(timers, MEASURED_MS, true)]);
      const facts = {
        loopDelayMs: { value: endMeasurement() },
        hasRenewer: { value: store.renewer !== undefined },
      };
      const ofProcess = processChecks.flatMap((check) => check.judge(facts, ttlMs) ?? []);
      return { ...examination, findings: [...examination.findings, ...ofProcess] };
    } finally {
      endMeasurement();
    }
  }
}

/** Starts measuring. The returned function stops measuring and returns the delay. */
function measureLoopDelay(): () => number {
  const histogram = monitorEventLoopDelay({ resolution: SAMPLE_MS });
  histogram.enable();
  return () => {
    histogram.disable();
    // A sample is the time between two timers, which includes their interval.
    return Math.max(0, histogram.percentile(99) / 1e6 - SAMPLE_MS);
  };
}
