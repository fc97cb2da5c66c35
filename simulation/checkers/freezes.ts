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
   * The latest time by which a process does a task that is due at `dueMs` and takes `slackMs`.
   */
  latestMs(process: string, dueMs: number, slackMs: number): number {
    let readyMs = dueMs;
    for (const { fromMs, untilMs } of this.#freezes.get(process) ?? []) {
      if (fromMs <= readyMs + slackMs && untilMs > readyMs) readyMs = untilMs;
    }
    return readyMs + slackMs;
  }

  /** Whether the machine slept, which makes its timers late by as much. */
  wasSuspended(process: string, fromMs: number, toMs: number): boolean {
    const freezes = this.#freezes.get(process) ?? [];
    return freezes.some(
      (freeze) => freeze.isSuspend && freeze.fromMs <= toMs && freeze.untilMs >= fromMs,
    );
  }

  wasFrozen(process: string, fromMs: number, toMs: number): boolean {
    const freezes = this.#freezes.get(process) ?? [];
    return freezes.some((freeze) => freeze.fromMs <= toMs && freeze.untilMs >= fromMs);
  }
}
