/** Verdicts as text for a terminal. */
import { type Agreement, scoreOf, summaryOf } from "./agreement.js";
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

/** The verdict of each cell; the last run counts. */
export function verdictTable(
  cells: readonly Cell[],
  outcomes: readonly Outcome[],
  width: number,
): string {
  return tableOf(cells, width, (subject, fault) => {
    const found = outcomes.findLast((one) => one.subject.id === subject && one.fault.id === fault);
    if (!found) return "-";
    return found.history ? cellOf(found.history.verdict) : "failed";
  });
}

/** How many runs of each cell had the same verdict, and the verdicts of those that had not. */
export function agreementTable(
  cells: readonly Cell[],
  agreement: Agreement,
  width: number,
): string {
  const { trials, agreed, divided } = summaryOf(agreement);
  const table = tableOf(cells, width, (subject, fault) => {
    const score = scoreOf(agreement, { subject, fault });
    return score ? `${score.same} of ${score.runs}` : "-";
  });
  const lines = divided.map(([id, text]) => `  ${id}: ${text}`);
  return [table, `All runs agree on ${agreed} of ${trials} trials.`, ...lines, ""].join("\n");
}

/** The versions of Node, of the servers and of the packages that were tried. */
export function versionsLine(outcomes: readonly Outcome[]): string {
  const versions = outcomes.flatMap(({ history }) => Object.entries(history?.versions ?? {}));
  return `Versions: ${[...new Set(versions.map((one) => one.join(" ")))].join(", ")}`;
}

/** Subjects down, faults across, in the order of the cells, in as many blocks as fit the width. */
function tableOf(
  cells: readonly Cell[],
  width: number,
  textOf: (subject: string, fault: string) => string,
): string {
  const subjects = [...new Set(cells.map(({ subject }) => subject.id))];
  const faults = [...new Set(cells.map(({ fault }) => fault.id))];
  const head = Math.max(...subjects.map((id) => id.length)) + 2;
  const column = Math.max(...faults.map((id) => id.length)) + 2;
  const perBlock = Math.max(1, Math.floor((width - head) / column));
  const blocks: string[] = [];
  for (let at = 0; at < faults.length; at += perBlock) {
    const across = faults.slice(at, at + perBlock);
    const line = (first: string, cells: readonly string[]): string =>
      (first.padEnd(head) + cells.map((cell) => cell.padEnd(column)).join("")).trimEnd();
    const rows = subjects.map((id) =>
      line(
        id,
        across.map((fault) => textOf(id, fault)),
      ),
    );
    blocks.push([line("", across), ...rows].join("\n"));
  }
  return `${blocks.join("\n\n")}\n`;
}
