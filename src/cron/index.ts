/**
 * Scheduled work that one of all replicas runs. A run is known by its name and its *scheduled*
 * time, which every replica computes from the same expression, and not by the moment of the call.
 * So a replica whose clock is late finds the mark of a run that has ended long ago, where a mutex
 * would be free again. A time is run twice only if clocks differ by more than `keepMs`, or if a
 * lease was lost, of which the work is told.
 */
export { type CronCoordinator, cronCoordinator } from "./coordinator.js";
export { onceEach } from "./once-each.js";
export type { CronOptions, SkippedRun } from "./options.js";
export type { CronerJob, Due, NodeCronContext } from "./scheduled-time.js";
