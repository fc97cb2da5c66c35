import type { OptionSpecs } from "./arguments.js";
import type { Command, Verbs } from "./command.js";

const WIDTH = 80;

/** `holdfast --help`. */
export function overview(verbs: Verbs): string {
  const rows = Object.entries(verbs).map(([verb, { summary }]) => row(verb, summary, 12));
  return [
    "Locks that hold across processes, machines and failures.",
    "",
    "  holdfast run backup -- ./backup.sh",
    "",
    "Commands:",
    ...rows,
    "",
    row("holdfast COMMAND --help", "its options and examples", 26),
    row("holdfast --version", "the version", 26),
    "",
    "Options that many commands have (--store, -q, -v, --json, --json-fd) may also stand",
    "before the command.",
    "",
    "Store: --store URL, else the environment variable HOLDFAST_STORE, else a file of",
    "this user that all its processes on this machine share.",
    "",
    "Exit codes: the command's own; 128 + n when signal n ended it; 1 (or -E) not",
    "acquired, or a deadlock found; 64 wrong usage; 69 store out of reach; 70 internal",
    "error; 74 stdout not writable; 79 lease lost; 126 command not executable; 127",
    "command not found.",
    "",
  ].join("\n");
}

/** `holdfast VERB --help`. */
export function helpOf(verb: string, { usage, about, options, examples }: Command): string {
  const lines = usage.map((line, index) => {
    return `${index === 0 ? "Usage: " : "       "}holdfast ${verb} ${line}`.trimEnd();
  });
  lines.push("", ...wrap(about, 0));
  const names = Object.entries(options).map(([name, spec]) => ({
    flags: flagsOf(name, spec),
    spec,
  }));
  const column = Math.max(...names.map(({ flags }) => flags.length)) + 4;
  lines.push("", "Options:");
  for (const { flags, spec } of names) lines.push(row(flags, spec.help, column));
  if (examples.length > 0) lines.push("", "Examples:");
  for (const [line, does] of examples) lines.push(`  ${line}`, ...wrap(does, 6));
  return `${lines.join("\n")}\n`;
}

function flagsOf(name: string, { short, value }: OptionSpecs[string]): string {
  const flags = short === undefined ? `    --${name}` : `-${short}, --${name}`;
  return value === undefined ? flags : `${flags} ${value}`;
}

function row(left: string, right: string, column: number): string {
  const [first = "", ...others] = wrap(right, 0, WIDTH - column - 2);
  const indent = " ".repeat(column + 2);
  return [`  ${left.padEnd(column)}${first}`, ...others.map((line) => indent + line)].join("\n");
}

function wrap(text: string, indent: number, width: number = WIDTH - indent): string[] {
  const lines: string[] = [];
  for (const paragraph of text.split("\n")) {
    let line = "";
    for (const word of paragraph.split(" ")) {
      if (line !== "" && line.length + 1 + word.length > width) {
        lines.push(line);
        line = "";
      }
      line = line === "" ? word : `${line} ${word}`;
    }
    lines.push(line);
  }
  return lines.map((line) => " ".repeat(indent) + line);
}
