#!/usr/bin/env node
import { Arguments, type OptionSpecs, UsageError } from "./arguments.js";
import type { Ending } from "./command.js";
import { ExitCode, Interrupted } from "./exit-code.js";
import { Report } from "./report.js";
import { VERBS } from "./verbs.js";

const HELP: OptionSpecs = { help: { short: "h", help: "show this" } };

/** The longest that a timer takes, about 24 days. */
const LONGEST_MS = 2 ** 31 - 1;

process.exitCode = ExitCode.internal;
// Whatever is awaited is waited for: a connection to a store alone keeps no process alive.
setInterval(() => {}, LONGEST_MS);
end(await dispatch(process.argv.slice(2)));

async function dispatch([verb, ...rest]: readonly string[]): Promise<Ending> {
  if (verb === undefined) return dispatch(isNpmStart() ? ["demo"] : ["--help"]);
  if (verb === "--help" || verb === "-h" || verb === "help") return help(rest[0]);
  if (verb === "--version" || verb === "-V") return version();
  const found = VERBS[verb];
  if (!found || !Object.hasOwn(VERBS, verb)) {
    complain(`There is no command ${JSON.stringify(verb)}.`, "");
    return ExitCode.usage;
  }
  const command = await found.load();
  let report = new Report({ isQuiet: false, isVerbose: false, jsonFd: null, secrets: [] });
  let isVerbose = false;
  try {
    const args = new Arguments(rest, { ...command.options, ...HELP });
    if (args.has("help")) return await help(verb);
    isVerbose = args.has("verbose");
    report = await reportFor(args);
    return await command.run(args, report, VERBS);
  } catch (error) {
    if (error instanceof UsageError) {
      report.event("error", { message: error.message });
      complain(error.message, verb);
      return ExitCode.usage;
    }
    if (error instanceof Interrupted && error.signal === "SIGINT") return { interrupt: "us" };
    const { explainFailure } = await import("./failure.js");
    const { text, exitCode } = explainFailure(error, isVerbose);
    if (text !== "") report.error(text);
    return exitCode;
  }
}

async function reportFor(args: Arguments): Promise<Report> {
  const url = args.text("store") ?? process.env.HOLDFAST_STORE ?? "";
  const { secretsOf } = await import("./open-store.js");
  const secrets = secretsOf(url);
  // What was typed can be read by every user of the machine: take it back as soon as possible.
  if (secrets.length > 0 && args.has("store")) process.title = "holdfast";
  return new Report({
    isQuiet: args.has("quiet"),
    isVerbose: args.has("verbose"),
    jsonFd: args.count("json-fd", 1, 1_023) ?? (args.has("json") ? 2 : null),
    secrets,
  });
}

async function help(verb: string | undefined): Promise<number> {
  const { helpOf, overview } = await import("./help.js");
  const found = verb === undefined ? undefined : VERBS[verb];
  const command = await found?.load();
  process.stdout.write(command && verb ? helpOf(verb, command) : overview(VERBS));
  return ExitCode.ok;
}

async function version(): Promise<number> {
  const { readFileSync } = await import("node:fs");
  const file = new URL("../../package.json", import.meta.url);
  process.stdout.write(`${JSON.parse(readFileSync(file, "utf8")).version}\n`);
  return ExitCode.ok;
}

function complain(message: string, verb: string): void {
  const more = verb === "" ? "holdfast --help" : `holdfast ${verb} --help`;
  process.stderr.write(`holdfast: ${message}\nTry: ${more}\n`);
}

/** `npm start` alone shows what it is about. */
function isNpmStart(): boolean {
  return process.env.npm_lifecycle_event === "start";
}

function end(ending: Ending): void {
  if (typeof ending === "number") process.exit(ending);
  process.kill(ending.interrupt === "us" ? process.pid : 0, "SIGINT");
}
