/** `npm run bench -- [STORE] [QUESTION] [--quick] [--languages] [--all]` */
import { constants } from "node:os";
import { join } from "node:path";
import { type Choice, choose } from "./choice.js";
import { contest, type Question, type Standing } from "./contest.js";
import { endForked } from "./forked.js";
import { endForeign } from "./languages/foreign-process.js";
import { questions } from "./questions.js";
import { lastTookMs, writeResult } from "./results.js";
import { readTicks, stolenSince, stolenText } from "./stolen-time.js";
import { goalLines, table } from "./table.js";
import { TimeLeft } from "./time-left.js";

const choice = choose(process.argv.slice(2), questions);
if (typeof choice === "string") {
  process.stderr.write(choice);
  process.exit(64);
}

let current: Question | undefined;
let where = "";
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, async () => {
    progress("");
    process.stderr.write("\nStopped. What was answered before is kept.\n");
    endForked();
    endForeign();
    await current?.close?.().catch(() => {});
    process.exit(128 + constants.signals[signal]);
  });
}

// The compiled file is in bench/build/bench; results stay in bench/results.
const folder = join(import.meta.dirname, "..", "..", "results");
const startMs = performance.now();
const { isQuick } = choice;
const timeLeft = new TimeLeft(choice.questions.map((one) => lastTookMs(folder, one, isQuick)));
for (const [index, question] of choice.questions.entries()) {
  current = question;
  where = `${index + 1} of ${choice.questions.length}`;
  await answer(question, choice).catch((error: unknown) => {
    progress("");
    process.stdout.write(`failed: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  });
  // A question that failed may have left processes, for which this one would wait.
  endForked();
  endForeign();
  timeLeft.next();
}
const names = choice.leftOut.map(({ store, name }) => `${store} ${name}`);
if (names.length > 0)
  process.stdout.write(`\nLeft out, unless named or with --all: ${names.join(", ")}.\n`);
process.stdout.write(`\n${choice.questions.length} questions in ${secondsSince(startMs)}\n`);

async function answer(question: Question, choice: Choice): Promise<void> {
  const { store, name, title } = question;
  process.stdout.write(`\n${store} ${name}: ${title} (${place()})\n`);
  const questionMs = performance.now();
  const ticks = readTicks();
  const standings = await contest(question, choice, progress);
  progress("");
  const of = (contestant: string): Standing => {
    const found = standings.find((one) => one.name === contestant);
    if (!found) throw new Error(`no contestant ${contestant}`);
    return found;
  };
  const goals = question.goals(of, standings);
  const stolen = stolenSince(ticks);
  const lines = [
    table(question, standings),
    goalLines(goals),
    goals.every(({ isMet }) => isMet) ? "" : (question.reason ?? ""),
    `(${secondsSince(questionMs)}${stolenText(stolen)})`,
  ];
  process.stdout.write(`${lines.filter((text) => text !== "").join("\n")}\n`);
  const tookMs = Math.round(performance.now() - questionMs);
  writeResult(folder, question, standings, goals, { isQuick, tookMs, stolen });
}

function progress(text: string): void {
  if (!process.stderr.isTTY) return;
  process.stderr.write(`\r\x1b[K${text === "" ? "" : `${place()}: ${text}`}`);
}

/** Which question of how many it is, and the time that all of them still take. */
function place(): string {
  const left = timeLeft.text();
  return left === "" ? where : `${where}, ${left}`;
}

function secondsSince(sinceMs: number): string {
  return `${((performance.now() - sinceMs) / 1000).toFixed(1)} s`;
}
