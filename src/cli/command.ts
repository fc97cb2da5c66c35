import type { Arguments, OptionSpecs } from "./arguments.js";
import type { Report } from "./report.js";

/** One verb of the command line. */
export interface Command {
  /** The arguments after the verb, one line for each way to use it. */
  readonly usage: readonly string[];
  /** Sentences about the verb, for its own help. */
  readonly about: string;
  readonly options: OptionSpecs;
  /** A command to run may follow the name. */
  readonly runsCommand?: boolean;
  /** Lines to copy, each with its effect. */
  readonly examples: readonly (readonly [line: string, does: string])[];
  /** Resolves with the exit code. */
  run(args: Arguments, report: Report, verbs: Verbs): Promise<Ending>;
}

/** An exit code, or the interrupt to end by. */
export type Ending = number | Interruption;

/**
 * A script that runs holdfast stops only if holdfast ends by the interrupt itself. Where the
 * command had the terminal, the typed interrupt reached only the command: then holdfast sends it to
 * its whole group.
 */
export interface Interruption {
  readonly interrupt: "us" | "our group";
}

/** All verbs of the command line, each with its line in the overview. */
export type Verbs = Readonly<
  Record<string, { readonly summary: string; load(): Promise<Command> }>
>;
