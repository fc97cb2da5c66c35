import type { Arguments, OptionSpecs } from "./arguments.js";
import type { Report } from "./report.js";

/** One verb of the command line. */
export interface Command {
  /** What follows the verb, one line for each way to use it. */
  readonly usage: readonly string[];
  /** What it does, in sentences, for its own help. */
  readonly about: string;
  readonly options: OptionSpecs;
  /** A command to run may follow the name. */
  readonly runsCommand?: boolean;
  /** Lines to copy, each with what it does. */
  readonly examples: readonly (readonly [line: string, does: string])[];
  /** Resolves with the exit code. */
  run(args: Arguments, report: Report, verbs: Verbs): Promise<Ending>;
}

/** An exit code, or the interrupt to end by. */
export type Ending = number | Interruption;

/**
 * A script around us stops only if we end by the interrupt itself. Where the command had the
 * terminal, only the command got what was typed, and our whole group has to be told.
 */
export interface Interruption {
  readonly interrupt: "us" | "our group";
}

/** What the command line can do: each verb with its one line in the overview. */
export type Verbs = Readonly<
  Record<string, { readonly summary: string; load(): Promise<Command> }>
>;
