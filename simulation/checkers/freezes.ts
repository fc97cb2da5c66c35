import type { Entry } from "../history.js";

interface Freeze {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly isSuspend: boolean;
}

/** When each process was frozen: no process is late for a task that fell due meanwhile. */
export class Freezes {
  readonly #freezes = new Map<string, Freeze[]>();

  constructor(entries: readonly Entry[]) {
    for (const entry of entries) {
      if (entry.type !== "frozen") continue;
      const freezes = this.#freezes.get(entry.process) ?? [];
      this.#freezes.set(entry.process, freezes);
      freezes.push({
        fromMs: entry.atMs,
        untilMs: entry.untilMs,
        isSuspend: entry.how === "suspended",
      });
    }
  }

  /**
   * The latest time by which a process does a task that is due at `dueMs` and takes `slackMs`. The
   * time before a freeze counts: after it, only the rest of the slack is left.
   */
  latestMs(process: string, dueMs: number, slackMs: number): number {
    let latestMs = dueMs + slackMs;
    for (const { fromMs, untilMs } of this.#freezes.get(process) ?? []) {
      const restMs = Math.min(slackMs, latestMs - fromMs);
      if (restMs >= 0) latestMs = Math.max(latestMs, untilMs + restMs);
    }
    return latestMs;
  }

  /** For how long the machine slept, which makes its timers late by as much. */
  sleptMs(process: string, fromMs: number, toMs: number): number {
    return (this.#freezes.get(process) ?? [])
      .filter((freeze) => freeze.isSuspend && freeze.fromMs <= toMs && freeze.untilMs >= fromMs)
      .reduce((sum, freeze) => sum + freeze.untilMs - freeze.fromMs, 0);
  }

  /** For how long any process did nothing. */
  totalMs(fromMs: number, toMs: number): number {
    return [...this.#freezes.values()]
      .flat()
      .reduce((sum, freeze) => sum + overlapMs(freeze, fromMs, toMs), 0);
  }

  /** Whether a freeze that began before `toMs` ended at `fromMs` or later. */
  wasFrozen(process: string, fromMs: number, toMs: number): boolean {
    const freezes = this.#freezes.get(process) ?? [];
    return freezes.some((freeze) => freeze.fromMs < toMs && freeze.untilMs >= fromMs);
  }
}

function overlapMs(freeze: Freeze, fromMs: number, toMs: number): number {
  return Math.max(0, Math.min(freeze.untilMs, toMs) - Math.max(freeze.fromMs, fromMs));
}
