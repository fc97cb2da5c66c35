import { InvalidOptionError, invalidValue } from "../errors/index.js";

/** As much of the context of a task of `node-cron` 4 as is used. */
export interface NodeCronContext {
  /** The scheduled time. */
  readonly date: Date;
}

/** As much of a job of `croner` 10 or newer as is used. */
export interface CronerJob {
  /** When the run under way began. */
  currentRun(): Date | null;
  /** Scheduled times before a date, the latest first. */
  previousRuns(count: number, before: Date): Date[];
  /** The time of a job that runs once. */
  getOnce(): Date | null;
  /** The options of the job. */
  readonly options: { readonly interval?: number | undefined };
}

/** The first argument of a function that `node-cron` or `croner` calls. */
export type Due = NodeCronContext | CronerJob;

const SECOND_MS = 1_000;

/** The time for which a scheduler calls a function now: the same in every replica. */
export function scheduledTimeOf(due: Due): Date {
  if ("date" in due && due.date instanceof Date) return due.date;
  if (!("previousRuns" in due) || typeof due.previousRuns !== "function") {
    const rule = "must be what node-cron 4 or croner 10 or newer calls a function with";
    throw invalidValue("due", `a value of type ${typeof due}`, rule);
  }
  if (due.options.interval) {
    const rule = "must not be set: it counts from the start of each process, so replicas differ";
    throw new InvalidOptionError("interval", due.options.interval, rule);
  }
  const once = due.getOnce();
  if (once) return once;
  // croner calls at or after the scheduled time, and tells only when it called. Of several times
  // that a blocked event loop missed it runs one: the latest is the one that other replicas ran.
  const startedMs = due.currentRun()?.getTime() ?? Number.NaN;
  const afterMs = (Math.floor(startedMs / SECOND_MS) + 1) * SECOND_MS;
  const [latest] = Number.isNaN(startedMs) ? [] : due.previousRuns(1, new Date(afterMs));
  if (latest) return latest;
  throw invalidValue(
    "due",
    "a job of croner that is not due",
    "must be a job that croner runs now",
  );
}

/** The name of the run of a job at its scheduled time, in the form of the keys of `node-cron`. */
export function runName(job: string, scheduledAt: Date): string {
  return `${job}:${scheduledAt.toISOString()}`;
}
