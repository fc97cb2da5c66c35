import type { OnceBeginning, OnceOptions } from "../locks/once.js";
import { knownOptions } from "../options/known-options.js";
import { OPTION_NAMES } from "../options/options.js";

/** A scheduled time that this process did not run, because another one runs or has run it. */
export interface SkippedRun {
  /** The name of the run: the name of the job, a colon, and the scheduled time in ISO 8601. */
  readonly name: string;
  /** Whether the other run is under way or has ended. */
  readonly state: "running" | "done";
  /** The `meta` of the other run; null where the store did not tell. */
  readonly by: Extract<OnceBeginning, { began: false }>["by"];
}

/** The options of scheduled work: those of `once`, with a default for `keepMs`. */
export interface CronOptions extends Omit<OnceOptions, "keepMs"> {
  /**
   * How long a run is remembered. Default one hour; more than the clocks of two replicas may ever
   * differ.
   */
  readonly keepMs?: number | undefined;
  /** Is told of every time that another process runs or has run. */
  readonly onSkip?: ((skipped: SkippedRun) => void) | undefined;
}

const HOUR_MS = 3_600_000;

/** The options apart: those of `once`, and the listener. */
export function checkedOptions(given: CronOptions | undefined): {
  readonly once: OnceOptions;
  readonly onSkip: (skipped: SkippedRun) => void;
} {
  const names = ["keepMs", "onSkip", ...OPTION_NAMES] as const;
  const { onSkip = () => {}, keepMs = HOUR_MS, ...options } = knownOptions(given, names);
  return { once: { ...options, keepMs }, onSkip };
}
