import type { Holdfast } from "../api/holdfast.js";
import type { Lease } from "../lease/lease.js";
import { type CronOptions, checkedOptions } from "./options.js";
import { type Due, runName, scheduledTimeOf } from "./scheduled-time.js";

/**
 * A function for `croner` or `node-cron` that runs `work` once for each scheduled time, in one of
 * all replicas. An error of `work` passes to the scheduler, and leaves no mark: a replica that is
 * called later for the same time, or that waits by `waitMs`, runs it again.
 *
 * @example
 * import { Cron } from "croner";
 * import { onceEach } from "holdfast/cron";
 *
 * new Cron("0 3 * * *", onceEach(locks, "report", (lease) => sendReport(lease.token)));
 */
export function onceEach(
  locks: Holdfast,
  job: string,
  work: (lease: Lease, scheduledAt: Date) => unknown,
  options?: CronOptions,
): (due: Due) => Promise<void> {
  const { once, onSkip } = checkedOptions(options);
  return async (due) => {
    const scheduledAt = scheduledTimeOf(due);
    const name = runName(job, scheduledAt);
    const result = await locks.once(name, (lease) => work(lease, scheduledAt), once);
    if (!result.ran) onSkip({ name, state: result.state, by: result.by });
  };
}
