import type { Arguments, OptionSpecs } from "./arguments.js";
import type { Report } from "./report.js";

/** One verb of the command line. */
export interface Command {
  /** What follows the verb, one line for each way to use it. */
  readonly usage: readonly string[];
  /** What it does, in sentences, for its own help. */
  readonly about: string;
  readonly options: OptionSpecs;
  /** Lines to copy, each with what it does. */
  readonly examples: readonly (readonly [line: string, does: string])[];
  /** Resolves with the exit code. */
  run(args: Arguments, report: Report, verbs: Verbs): Promise<Ending>;
}

/**
 * An exit code, or the signal to end by, so that a shell around us sees what it would have seen.
 */
export type Ending = number | { readonly raise: NodeJS.Signals };

/** What the command line can do: each verb with its one line in the overview. */
export type Verbs = Readonly<
  Record<string, { readonly summary: string; load(): Promise<Command> }>
>;
