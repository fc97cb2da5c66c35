/** `npm run lab -- [SUBJECT] [FAULT] [--all] [--quick] [--runs N] [--open] [--list]` */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { choose } from "./choice.js";
import { expectedFailure, isExpected } from "./expected.js";
import { faults } from "./faults/all.js";
import { cellsOf, type Outcome, runAll } from "./matrix.js";
import { showPage } from "./pages/show-page.js";
import { subjects } from "./subjects/all.js";
import { agreementOf, tableOf } from "./table.js";
import { PROJECT } from "./versions.js";

const USAGE = `npm run lab -- [SUBJECT] [FAULT] [--all] [--quick] [--runs N] [--open] [--list]

Without a word the trials of the ladder and of Holdfast run. A word may be the beginning of a name,
such as "rung".
--all      with the packages that one would use instead
--quick    every rung once, the stores of Holdfast against three faults each
--runs N   every trial N times, and whether their verdicts agree
--open     of one trial: a page with the program, the picture and the lines that cure it
--list     the names
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    all: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    open: { type: "boolean", default: false },
    list: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
    runs: { type: "string", default: "1" },
  },
});

const folder = join(PROJECT, "lab", "build", "histories");
const outcomes: Outcome[] = [];

/** Verdicts on peers are reported; all others must be as expected. */
function show(outcome: Outcome, count: number): void {
  const { subject, fault, history, error } = outcome;
  outcomes.push(outcome);
  const isJudged = subject.family !== "peer";
  const where = `${`${outcomes.length}`.padStart(`${count}`.length)} of ${count}`;
  const names = `${subject.id.padEnd(18)} ${fault.id.padEnd(20)}`;
  if (!history) {
    const why = error instanceof Error ? error.message : String(error);
    process.stdout.write(`${where}  ${names} the trial failed: ${why}\n`);
    if (isJudged) process.exitCode = 1;
    return;
  }
  const isRight = !isJudged || isExpected(subject.id, fault.id, history.verdict);
  const remark = isRight ? "" : `  (expected: ${expectedFailure(subject.id, fault.id) ?? "held"})`;
  process.stdout.write(`${where}  ${names} ${history.verdict.text}${remark}\n`);
  if (!isRight) process.exitCode = 1;
  writeFileSync(join(folder, `${subject.id}.${fault.id}.json`), JSON.stringify(history, null, 1));
}

if (values.help) process.stdout.write(USAGE);
else if (values.list) {
  for (const { id, title } of [...subjects, ...faults]) {
    process.stdout.write(`${id.padEnd(20)} ${title}\n`);
  }
} else {
  const once = choose({ words: positionals, isQuick: values.quick, isAll: values.all });
  if (once.length === 0) {
    process.stderr.write(`There is no trial "${positionals.join(" ")}".\n\n${USAGE}`);
    process.exit(64);
  }
  if (values.open && once.length > 1) {
    process.stderr.write(`--open shows one trial, and there are ${once.length}: name a fault.\n`);
    process.exit(64);
  }
  const runs = Number(values.runs);
  if (!Number.isInteger(runs) || runs < 1) {
    process.stderr.write(`--runs must be a whole number from 1 on.\n\n${USAGE}`);
    process.exit(64);
  }
  const cells = Array.from({ length: runs }, () => once).flat();
  mkdirSync(folder, { recursive: true });
  await runAll(cells, (outcome) => show(outcome, cells.length));
  if (once.length > 1)
    process.stdout.write(`\n${tableOf(once, outcomes, process.stdout.columns ?? 120)}\n`);
  if (runs > 1) process.stdout.write(agreementOf(outcomes));
  process.stdout.write(`The histories are in ${folder}\n`);
  const last = outcomes.at(-1)?.history;
  if (values.open && last) await showPage(last, cellsOf(subjects, faults));
}
