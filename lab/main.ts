/** `npm run lab`: runs trials, shows their verdicts, and compares them with the expected ones. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { agreementOf } from "./agreement.js";
import { choose } from "./choice.js";
import { type Command, commandOf, USAGE } from "./command.js";
import { expectedFailure, isExpected } from "./expected.js";
import { faults } from "./faults/all.js";
import { type Cell, cellsOf, type Outcome, runAll } from "./matrix.js";
import { showPage } from "./pages/show-page.js";
import { RunLog } from "./run-log.js";
import { subjects } from "./subjects/all.js";
import { agreementTable, verdictTable, versionsLine } from "./table.js";
import { HISTORIES, RUNS, UNEXPECTED } from "./versions.js";

const WRONG_USAGE = 64;

function refuse(message: string): never {
  process.stderr.write(`${message}\n\n${USAGE}`);
  process.exit(WRONG_USAGE);
}

function understand(): Command {
  try {
    return commandOf(process.argv.slice(2));
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error));
  }
}

/** Verdicts on peers are reported; all others must be as expected. Whether this one is. */
function show({ subject, fault, history, error }: Outcome, at: number, count: number): boolean {
  const isJudged = subject.family !== "peer";
  const where = `${`${at}`.padStart(`${count}`.length)} of ${count}`;
  const names = `${subject.id.padEnd(18)} ${fault.id.padEnd(20)}`;
  if (!history) {
    const why = error instanceof Error ? error.message : String(error);
    process.stdout.write(`${where}  ${names} the trial failed: ${why}\n`);
    if (isJudged) process.exitCode = 1;
    return !isJudged;
  }
  const isRight = !isJudged || isExpected(subject.id, fault.id, history.verdict);
  const remark = isRight ? "" : `  (expected: ${expectedFailure(subject.id, fault.id) ?? "held"})`;
  process.stdout.write(`${where}  ${names} ${history.verdict.text}${remark}\n`);
  if (!isRight) process.exitCode = 1;
  return isRight;
}

async function run(once: readonly Cell[], { runs, jobs, resumes, opens }: Command): Promise<void> {
  const isRepeated = runs > 1;
  const log = isRepeated ? new RunLog(RUNS, { resumes }) : null;
  const cells = log?.missing(once, runs) ?? once;
  const outcomes: Outcome[] = [];
  mkdirSync(UNEXPECTED, { recursive: true });
  await runAll(cells, jobs, (outcome) => {
    const { subject, fault, history } = outcome;
    const isRight = show(outcome, outcomes.push(outcome), cells.length);
    if (!history) return;
    log?.add(history);
    const text = JSON.stringify(history, null, 1);
    writeFileSync(join(HISTORIES, `${subject.id}.${fault.id}.json`), text);
    // The next run would write over it.
    const name = `${subject.id}.${fault.id}.${history.startedAt.replaceAll(":", "-")}.json`;
    if (!isRight) writeFileSync(join(UNEXPECTED, name), text);
  });
  const width = process.stdout.columns ?? 120;
  if (once.length > 1) process.stdout.write(`\n${verdictTable(once, outcomes, width)}\n`);
  if (log) process.stdout.write(agreementTable(once, agreementOf(log.sightings), width));
  process.stdout.write(`${versionsLine(outcomes)}\nThe histories are in ${HISTORIES}\n`);
  const last = outcomes.at(-1)?.history;
  if (opens && last) await showPage(last, cellsOf(subjects, faults));
}

const command = understand();
if (command.helps) process.stdout.write(USAGE);
else if (command.lists) {
  for (const { id, title } of [...subjects, ...faults]) {
    process.stdout.write(`${id.padEnd(20)} ${title}\n`);
  }
} else {
  const once = choose(command);
  if (once.length === 0) refuse(`There is no trial "${command.words.join(" ")}".`);
  if (command.opens && once.length > 1) {
    refuse(`--open shows one trial, and there are ${once.length}: name a fault.`);
  }
  await run(once, command);
}
