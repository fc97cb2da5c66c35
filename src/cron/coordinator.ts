import type { Holdfast } from "../api/holdfast.js";
import type { Lease } from "../lease/lease.js";
import type { OnceRun } from "../locks/once.js";
import { type CronOptions, checkedOptions } from "./options.js";
import { type NodeCronContext, runName } from "./scheduled-time.js";

const DAY_MS = 86_400_000;

/** A `RunCoordinator` of `node-cron` 4: says whether this process runs a scheduled time. */
export interface CronCoordinator {
  /** Whether this process is to run the time that the key names; `node-cron` calls it. */
  shouldRun(key: string, ttlMs: number): Promise<boolean>;
  /** The run has ended, with or without an error; `node-cron` calls it. */
  onComplete(key: string): Promise<void>;
  /**
   * The lease of the run that a task is called for: its signal, its fencing token. Null for a run
   * by `execute()`, which asks no coordinator.
   *
   * @example
   * import type { TaskContext } from "node-cron";
   * import { cronCoordinator } from "holdfast/cron";
   *
   * const coordinator = cronCoordinator(locks);
   * const task = async (context: TaskContext) => {
   *   const lease = coordinator.leaseOf(context);
   *   await work(lease?.signal ?? stop.signal);
   * };
   */
  leaseOf(context: NodeCronContext & { readonly task?: { readonly name?: string } }): Lease | null;
}

/**
 * Lets one of all replicas run each scheduled time of the `distributed` tasks of `node-cron` 4. The
 * others emit `execution:skipped`. With `waitMs` they wait for the end of the run, and take it over
 * where its process dies. `node-cron` does not tell a coordinator of an error, so a run that fails
 * counts as done; `onceEach` lets it be repeated. Nor does it tell of the end of every run: the
 * lease ends after `maxHoldMs`, a day by default.
 *
 * @example
 * import cron from "node-cron";
 * import { cronCoordinator } from "holdfast/cron";
 *
 * cron.setRunCoordinator(cronCoordinator(locks, { waitMs: 60_000 }));
 * cron.schedule("0 3 * * *", () => writeReport(), { name: "report", distributed: true });
 */
export function cronCoordinator(locks: Holdfast, options?: CronOptions): CronCoordinator {
  const { once, onSkip } = checkedOptions(options);
  const { maxHoldMs = DAY_MS } = once;
  const runs = new Map<string, OnceRun>();
  return {
    async shouldRun(key, ttlMs) {
      const begun = await locks.beginOnce(key, { ...once, maxHoldMs, ttlMs: once.ttlMs ?? ttlMs });
      if (begun.began) runs.set(key, begun);
      else onSkip({ name: key, state: begun.state, by: begun.by });
      return begun.began;
    },
    async onComplete(key) {
      const run = runs.get(key);
      runs.delete(key);
      await run?.finish();
    },
    leaseOf({ date, task }) {
      return runs.get(runName(task?.name ?? "", date))?.lease ?? null;
    },
  };
}
