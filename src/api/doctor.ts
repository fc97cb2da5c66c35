import type { Examination, ExamineOptions } from "../contract/examination.js";
import { unlessAborted } from "../lease/abort-listeners.js";
import type { Client } from "../lease/client.js";
import { knownOptions } from "../options/known-options.js";
import { checkDuration } from "../options/options.js";
import { pause } from "../time/pause.js";
import { within } from "../time/timers.js";
import { MEASURED_MS, measureLoopDelay, processChecks } from "./process-check.js";

/** A store settles within ten seconds by itself; one that does not is ended here. */
const STORE_MS = 12_000;
const EXAMPLE = "must be an object: { ttlMs, signal }";

/** Examines the deployment of one client: its store and its process. */
export class Doctor {
  readonly #client: Client;
  readonly #ttlMs: number;

  constructor(client: Client, ttlMs: number) {
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
        const empty: Examination = { store: store.name, findings: [], survivals: [] };
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
