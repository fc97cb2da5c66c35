import { type ParseArgsConfig, parseArgs } from "node:util";
import { nearestWord } from "../options/nearest-word.js";
import { parseDuration } from "./duration.js";

/** One option, as it is parsed, explained and completed. */
export interface OptionSpec {
  readonly short?: string;
  /** The name of its value in the help; a switch has none. */
  readonly value?: string;
  /** May be given several times. */
  readonly many?: boolean;
  readonly help: string;
}

export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

/** The command line cannot be understood: the message says why, the help says how. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "UsageError";
  }
}

/** The arguments of one command, parsed by its own list of options. */
export class Arguments {
  readonly positionals: readonly string[];
  /** The command to run: what follows `--`, or else the name; null when there is none. */
  readonly rest: readonly string[] | null;
  readonly #values: Readonly<Record<string, unknown>>;

  constructor(given: readonly string[], specs: OptionSpecs, runsCommand = false) {
    const options = Object.fromEntries(
      Object.entries(specs).map(([name, { short, value, many }]) => [
        name,
        {
          type: value === undefined ? ("boolean" as const) : ("string" as const),
          ...(short === undefined ? {} : { short }),
          multiple: many ?? false,
        },
      ]),
    );
    const dashes = given.indexOf("--");
    // With `--`, the word before it is never the command: it may be a name with a space.
    const start = dashes < 0 && runsCommand ? secondPositional(given, options) : dashes;
    this.rest = start < 0 ? null : given.slice(dashes < 0 ? start : dashes + 1);
    const args = start < 0 ? [...given] : given.slice(0, start);
    try {
      const parsed = parseArgs({ args, options, allowPositionals: true });
      this.#values = parsed.values;
      this.positionals = parsed.positionals;
    } catch (error) {
      throw new UsageError(complaint(error as Error, args, Object.keys(specs), runsCommand));
    }
  }

  has(name: string): boolean {
    return this.#values[name] !== undefined;
  }

  text(name: string): string | undefined {
    return this.#values[name] as string | undefined;
  }

  texts(name: string): readonly string[] {
    return (this.#values[name] as string[] | undefined) ?? [];
  }

  durationMs(name: string): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const durationMs = parseDuration(text);
    if (durationMs !== null) return durationMs;
    const dashes = name.length === 1 ? "-" : "--";
    throw new UsageError(
      `${dashes}${name} ${JSON.stringify(text)} is no duration: write 30s, 5m, 24h or 250ms.`,
    );
  }

  /** A whole number from `least` to `most`. */
  count(name: string, least: number, most: number): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= least && value <= most) return value;
    const range = most === Number.MAX_SAFE_INTEGER ? `from ${least}` : `from ${least} to ${most}`;
    throw new UsageError(
      `--${name} ${JSON.stringify(text)} is wrong: give a whole number ${range}.`,
    );
  }

  /** Exactly one positional argument. */
  one(what: string): string {
    const [first, second] = this.positionals;
    if (first === undefined) throw new UsageError(`${what} is missing.`);
    if (second !== undefined) throw unexpected(second, what);
    return first;
  }

  /** One positional argument or none. */
  atMostOne(what: string): string | undefined {
    return this.positionals.length === 0 ? undefined : this.one(what);
  }

  none(): void {
    const [first] = this.positionals;
    if (first !== undefined) throw new UsageError(`Unexpected argument ${JSON.stringify(first)}.`);
  }
}

/** Where a command begins that follows the name without dashes; -1 where none does. */
function secondPositional(
  args: readonly string[],
  options: NonNullable<ParseArgsConfig["options"]>,
): number {
  // Not strict: the options that follow may belong to the command.
  const { tokens } = parseArgs({ args, options, strict: false, tokens: true });
  return tokens.filter(({ kind }) => kind === "positional")[1]?.index ?? -1;
}

function unexpected(argument: string, after: string): UsageError {
  return new UsageError(
    `Unexpected argument ${JSON.stringify(argument)} after ${after}. ` +
      "A command to run goes behind --, as in: holdfast run backup -- ./backup.sh",
  );
}

/** Says in other words what the parser found: its own message is for programmers. */
function complaint(
  { message }: Error,
  args: readonly string[],
  known: readonly string[],
  runsCommand: boolean,
): string {
  const [, unknown] = /^Unknown option '([^']+)'/.exec(message) ?? [];
  if (unknown !== undefined) {
    const nearest = nearestWord(unknown.replace(/^--?/, ""), known);
    if (nearest !== null) return `There is no option ${unknown}: did you mean --${nearest}?`;
    const hint = runsCommand ? " The options of the command to run go behind --." : "";
    return `There is no option ${unknown} here.${hint}`;
  }
  const lacking = /^Option '([^']+)' argument missing/.exec(message);
  if (lacking) return `The option ${lacking[1]} needs a value.`;
  const [, option = ""] = /^Option '(.+?)' argument is ambiguous/.exec(message) ?? [];
  const at = args.findIndex((arg) => option.split(/,? /).includes(arg));
  if (option !== "" && at >= 0) {
    return `The option ${args[at]} needs a value, and ${args[at + 1]} starts with a dash.`;
  }
  const surplus = /^Option '([^']+)' does not take an argument/.exec(message);
  if (surplus) return `The option ${surplus[1]} takes no value.`;
  return message.split("\n")[0] ?? message;
}
