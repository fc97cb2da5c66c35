#!/usr/bin/env node

import { nearestWord } from "../options/nearest-word.js";
import { Arguments, type OptionSpec, type OptionSpecs, UsageError } from "./arguments.js";
import type { Ending } from "./command.js";
import { ExitCode, Interrupted } from "./exit-code.js";
import { print } from "./output.js";
import { Report } from "./report.js";
import { hideArguments, learnSecrets } from "./secrets.js";
import { EVENT_OPTIONS, OUTPUT_OPTIONS, STORE_OPTIONS } from "./settings.js";
import { VERBS } from "./verbs.js";

/** Options that may stand before the verb. */
const LEADING: readonly (readonly [string, OptionSpec])[] = Object.entries({
  ...STORE_OPTIONS,
  ...OUTPUT_OPTIONS,
  ...EVENT_OPTIONS,
});

const HELP: OptionSpecs = { help: { short: "h", help: "show this" } };

/** The longest that a timer takes, about 24 days. */
const MAX_MS = 2 ** 31 - 1;

process.exitCode = ExitCode.internal;
const given = process.argv.slice(2);
for (const text of [...given, process.env.HOLDFAST_STORE ?? ""]) learnSecrets(text);
// Every user of the machine can read arguments: passwords are overwritten first of all.
hideArguments(given);
// Keeps the process alive while a promise is awaited: a connection to a store alone does not.
setInterval(() => {}, MAX_MS);
end(await dispatch(verbFirst(given)));

async function dispatch([verb, ...rest]: readonly string[]): Promise<Ending> {
  if (verb === undefined) return dispatch(isNpmStart() ? ["demo"] : ["--help"]);
  const found = Object.hasOwn(VERBS, verb) ? VERBS[verb] : undefined;
  let report = new Report({ isQuiet: false, isVerbose: false, jsonFd: null });
  let isVerbose = false;
  try {
    if (verb === "--help" || verb === "-h" || verb === "help") return await help(rest[0]);
    if (verb === "--version" || verb === "-V") return await version();
    if (!found) throw new UsageError(verb.startsWith("-") ? refusedOption(verb) : noCommand(verb));
    const command = await found.load();
    const options = { ...command.options, ...HELP };
    const args = new Arguments(rest, options, command.runsCommand);
    if (args.has("help")) return await help(verb);
    isVerbose = args.has("verbose");
    report = new Report({
      isQuiet: args.has("quiet"),
      isVerbose,
      jsonFd: args.count("json-fd", 1, 1_023) ?? (args.has("json") ? 2 : null),
    });
    return await command.run(args, report, VERBS);
  } catch (error) {
    if (error instanceof UsageError) {
      report.error(error.message, [`Try: holdfast ${found ? `${verb} ` : ""}--help`]);
      return ExitCode.usage;
    }
    if (error instanceof Interrupted && error.signal === "SIGINT") return { interrupt: "us" };
    const { explainFailure } = await import("./failure.js");
    const { text, trace, exitCode } = explainFailure(error, isVerbose);
    if (text !== "") report.error(text, trace);
    return exitCode;
  }
}

function noCommand(verb: string): string {
  const nearest = nearestWord(verb, Object.keys(VERBS));
  const text = `There is no command ${JSON.stringify(verb)}`;
  return nearest === null ? `${text}.` : `${text}: did you mean ${nearest}?`;
}

async function help(verb: string | undefined): Promise<number> {
  const { helpOf, overview } = await import("./help.js");
  const found = verb === undefined ? undefined : VERBS[verb];
  const command = await found?.load();
  const text = command && verb ? helpOf(verb, command) : overview(VERBS);
  await print(text.trimEnd().split("\n"));
  return ExitCode.ok;
}

async function version(): Promise<number> {
  const { readFileSync } = await import("node:fs");
  const file = new URL("../../package.json", import.meta.url);
  await print([JSON.parse(readFileSync(file, "utf8")).version]);
  return ExitCode.ok;
}

/** `npm start` without arguments runs the demo. */
function isNpmStart(): boolean {
  return process.env.npm_lifecycle_event === "start";
}

function end(ending: Ending): void {
  if (typeof ending === "number") process.exit(ending);
  process.removeAllListeners("SIGINT");
  process.kill(ending.interrupt === "us" ? process.pid : 0, "SIGINT");
}

/**
 * Options that many commands have may stand before the verb: they are moved behind it, where the
 * verb refuses what it does not have.
 */
function verbFirst(given: readonly string[]): readonly string[] {
  let at = 0;
  for (let width = widthOf(given[at]); width > 0; width = widthOf(given[at])) at += width;
  const verb = given[at];
  if (verb === undefined) return given;
  return [verb, ...given.slice(0, at), ...given.slice(at + 1)];
}

/** Why an option is refused in the place of the verb. Its value may be a secret. */
function refusedOption(argument: string): string {
  const [option = ""] = argument.split("=");
  if (widthOf(argument) > 0) {
    return "The command is missing, as in: holdfast --store URL list";
  }
  const names = LEADING.map(([name]) => name);
  const nearest = nearestWord(option.replace(/^--?/, ""), names);
  if (nearest !== null) return `There is no option ${option}: did you mean --${nearest}?`;
  const all = names.map((name) => `--${name}`).join(", ");
  return `Only ${all} may stand before the command. Write: holdfast COMMAND ${option} …`;
}

/** How many arguments an option takes up, with its value; 0 where it is none that may lead. */
function widthOf(argument: string | undefined): number {
  for (const [name, { short, value }] of LEADING) {
    const isNamed = argument === `--${name}` || (short !== undefined && argument === `-${short}`);
    if (isNamed) return value === undefined ? 1 : 2;
    if (value !== undefined && argument?.startsWith(`--${name}=`)) return 1;
  }
  return 0;
}
