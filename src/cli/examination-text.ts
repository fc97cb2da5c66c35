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

/** One line for each finding, with cause and remedy below it, and then what survives what. */
export function examinationText(examination: Examination, ttlMs: number): string[] {
  const { store, findings, survivals } = examination;
  const table = survivals.map(({ event, outcome, isSafe }) => {
    return `${(isSafe ? "[safe]" : "[unsafe]").padEnd(INDENT.length)}${event}: ${outcome}`;
  });
  const heading = `This ${store} store, with a ttl of ${formatDuration(ttlMs)}, survives:`;
  const survivalLines = table.length === 0 ? [] : ["", heading, ...table];
  return [...findings.flatMap(linesOf), ...survivalLines, "", summaryOf(findings)];
}

function linesOf({ id, severity, what, why, remedy }: Finding): string[] {
  const lines = [`${SIGNS[severity].padEnd(INDENT.length)}${id}: ${what}`];
  if (why !== undefined) lines.push(`${INDENT}Why: ${why}`);
  if (remedy !== undefined) lines.push(`${INDENT}Remedy: ${remedy}`);
  return lines;
}

function summaryOf(findings: readonly Finding[]): string {
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
  return parts.length === 0 ? "Everything is fine." : `${parts.join(", ")}.`;
}
