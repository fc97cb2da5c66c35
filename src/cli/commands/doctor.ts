import type { Examination, Finding, Severity } from "../../contract/examination.js";
import type { Command } from "../command.js";
import { formatDuration } from "../duration.js";
import { ExitCode } from "../exit-code.js";
import { openExamined } from "../open-cli-store.js";
import { print } from "../output.js";
import { toJson } from "../plain-text.js";
import { withoutSecrets } from "../secrets.js";
import { STORE_OPTIONS, ttlMsOf } from "../settings.js";
import { Signals } from "../signals.js";

export const doctor: Command = {
  usage: ["[OPTIONS]"],
  about:
    "Examines the store and how it is configured: a line for each check, with cause and remedy, " +
    "then what each failure would do to the locks of this deployment. It changes nothing, and " +
    "says which checks it could not do. The exit code is 1 if there is a danger, with --strict " +
    "also if there is a warning, and 69 if the store cannot be reached.",
  options: {
    ttl: { value: "TIME", help: "the ttl of the locks, to judge times against; default 30s" },
    strict: { help: "exit code 1 also for warnings" },
    json: { help: "one line of JSON on stdout" },
    ...STORE_OPTIONS,
  },
  examples: [
    ["holdfast doctor --store redis://localhost", "is this server fit for locks?"],
    ["holdfast doctor --ttl 5s --strict", "for a deployment: fail on every warning"],
    ["holdfast doctor --json | jq '.findings[] | select(.severity == \"danger\")'", "for a script"],
  ],

  async run(args) {
    args.none();
    const ttlMs = ttlMsOf(args);
    using signals = new Signals();
    await using locks = await openExamined(args, signals.interrupted);
    const examination = await locks.examine({ ttlMs, signal: signals.interrupted });
    const isJson = args.has("json");
    const lines = isJson ? [toJson(examination)] : examinationText(examination, ttlMs);
    await print(lines.map(withoutSecrets));
    return codeOf(examination, args.has("strict"));
  },
};

function codeOf({ findings }: Examination, isStrict: boolean): number {
  const bad = findings.some(({ severity }) => {
    return severity === "danger" || (isStrict && severity === "warning");
  });
  return bad ? ExitCode.unfit : ExitCode.ok;
}

const SIGNS: Readonly<Record<Severity, string>> = {
  ok: "[ok]",
  note: "[note]",
  warning: "[warning]",
  danger: "[danger]",
  skipped: "[skipped]",
};
const INDENT = " ".repeat(Math.max(...Object.values(SIGNS).map(({ length }) => length)) + 1);

/** A line for each finding, with cause and remedy below it, then a line for each failure. */
export function examinationText(examination: Examination, ttlMs: number): string[] {
  const { store, findings, failureCases } = examination;
  const table = failureCases.map(({ event, outcome, isSafe }) => {
    return `${(isSafe ? "[safe]" : "[unsafe]").padEnd(INDENT.length)}${event}: ${outcome}`;
  });
  const heading = `Failures of this ${store} store, with a ttl of ${formatDuration(ttlMs)}:`;
  const caseLines = table.length === 0 ? [] : ["", heading, ...table];
  return [...findings.flatMap(linesOf), ...caseLines, "", summaryOf(examination)];
}

function linesOf({ id, severity, what, why, remedy }: Finding): string[] {
  const lines = [`${SIGNS[severity].padEnd(INDENT.length)}${id}: ${what}`];
  if (why !== undefined) lines.push(`${INDENT}Why: ${why}`);
  if (remedy !== undefined) lines.push(`${INDENT}Remedy: ${remedy}`);
  return lines;
}

function summaryOf({ findings, failureCases }: Examination): string {
  const count = (severity: Severity, one: string, many: string): string[] => {
    const { length } = findings.filter((finding) => finding.severity === severity);
    return length === 0 ? [] : [`${length} ${length === 1 ? one : many}`];
  };
  const parts = [
    ...count("danger", "danger", "dangers"),
    ...count("warning", "warning", "warnings"),
    ...count("note", "note", "notes"),
    ...count("skipped", "check that could not be done", "checks that could not be done"),
  ];
  if (parts.length > 0) return `${parts.join(", ")}.`;
  const unsafe = failureCases.filter(({ isSafe }) => !isSafe).length;
  if (unsafe === 0) return "Every check passed.";
  return `Every check passed; the failures marked [unsafe] (${unsafe}) can break mutual exclusion.`;
}
