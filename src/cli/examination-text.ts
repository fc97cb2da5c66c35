import type { Examination, Finding, Severity } from "../contract/examination.js";
import { formatDuration } from "./duration.js";

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
