/** `npm run bench -- [STORE] [QUESTION] [--quick]` */
import { join } from "node:path";
import { contest, type Standing } from "./contest.js";
import { questions } from "./questions.js";
import { writeResult } from "./results.js";
import { goalLines, table } from "./table.js";

const words = process.argv.slice(2);
const isQuick = words.includes("--quick");
const wanted = words.filter((word) => !word.startsWith("--"));
const unknown = wanted.filter(
  (word) => !questions.some(({ store, name }) => store === word || name === word),
);
if (unknown.length > 0) {
  const known = questions.map(({ store, name }) => `  ${store} ${name}`).join("\n");
  process.stderr.write(`There is no benchmark "${unknown.join(" ")}". There are:\n${known}\n`);
  process.exit(64);
}

// The compiled file is in bench/build/bench; results stay in bench/results.
const folder = join(import.meta.dirname, "..", "..", "results");
for (const question of questions) {
  const { store, name, title } = question;
  if (!wanted.every((word) => word === store || word === name)) continue;
  if (isQuick && question.takesLong && !wanted.includes(name)) continue;
  process.stdout.write(`\n${store} ${name}: ${title}\n`);
  const standings = await contest(question, isQuick, progress);
  progress("");
  const of = (contestant: string): Standing => {
    const found = standings.find((one) => one.name === contestant);
    if (!found) throw new Error(`no contestant ${contestant}`);
    return found;
  };
  const goals = question.goals(of, standings);
  process.stdout.write(`${table(question, standings)}\n${goalLines(goals)}\n`);
  writeResult(folder, question, standings, goals, isQuick);
}

function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}
