/** The verdicts of a run as text for a terminal. */
import type { Verdict, VerdictKind } from "./history.js";
import type { Cell, Outcome } from "./matrix.js";

const WORDS: Readonly<Record<VerdictKind, string>> = {
  held: "held",
  "told in time": "in time",
  "told late": "late",
  "two held": "TWO",
  stuck: "STUCK",
  ghost: "GHOST",
  overtaken: "OVERTAKEN",
};

function cellOf({ kind, ms }: Verdict): string {
  if (ms === undefined) return WORDS[kind];
  return `${WORDS[kind]} ${ms === null ? "ever" : ms}`;
}

/**
 * Subjects down and faults across, in the order of the cells, in as many blocks as the width needs.
 * The last run counts.
 */
export function tableOf(
  cells: readonly Cell[],
  outcomes: readonly Outcome[],
  width: number,
): string {
  const subjects = [...new Set(cells.map(({ subject }) => subject.id))];
  const faults = [...new Set(cells.map(({ fault }) => fault.id))];
  const head = Math.max(...subjects.map((id) => id.length)) + 2;
  const column = Math.max(...faults.map((id) => id.length)) + 2;
  const perBlock = Math.max(1, Math.floor((width - head) / column));
  const verdictOf = (subject: string, fault: string): string => {
    const found = outcomes.findLast((one) => one.subject.id === subject && one.fault.id === fault);
    if (!found) return "-";
    return found.history ? cellOf(found.history.verdict) : "failed";
  };
  const blocks: string[] = [];
  for (let at = 0; at < faults.length; at += perBlock) {
    const across = faults.slice(at, at + perBlock);
    const line = (first: string, cells: readonly string[]): string =>
      (first.padEnd(head) + cells.map((cell) => cell.padEnd(column)).join("")).trimEnd();
    const rows = subjects.map((id) =>
      line(
        id,
        across.map((fault) => verdictOf(id, fault)),
      ),
    );
    blocks.push([line("", across), ...rows].join("\n"));
  }
  return `${blocks.join("\n\n")}\n`;
}

/** How many trials had the same verdict in all runs, and the verdicts of those that had not. */
export function agreementOf(outcomes: readonly Outcome[]): string {
  const kinds = new Map<string, Map<string, number>>();
  for (const { subject, fault, history } of outcomes) {
    const id = `${subject.id} ${fault.id}`;
    const counts = kinds.get(id) ?? new Map<string, number>();
    const kind = history?.verdict.kind ?? "failed";
    kinds.set(id, counts.set(kind, (counts.get(kind) ?? 0) + 1));
  }
  const divided = [...kinds].filter(([, counts]) => counts.size > 1);
  const lines = divided.map(([id, counts]) => {
    return `  ${id}: ${[...counts].map(([kind, count]) => `${count} × ${kind}`).join(", ")}`;
  });
  const agreed = kinds.size - divided.length;
  return `${[`All runs agree on ${agreed} of ${kinds.size} trials.`, ...lines].join("\n")}\n`;
}
