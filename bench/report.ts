/**
 * `npm run bench:report`: docs/benchmarks.md with its picture, and docs/capacity.md, from the
 * results and nothing else.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { capacityPage } from "./capacity.js";
import { missedGoals, page } from "./page.js";
import { questions } from "./questions.js";
import { keptResults, type Result } from "./results.js";
import { summary } from "./summary.js";

const bench = join(import.meta.dirname, "..", "..");
const docs = join(bench, "..", "docs");

const results = keptResults(join(bench, "results"));

const pictures = join(docs, "benchmarks");
mkdirSync(pictures, { recursive: true });
writeFileSync(join(pictures, "summary.svg"), summary(results));
writeFileSync(join(docs, "benchmarks.md"), page(results) + missedGoals(results, reasonOf));
const template = readFileSync(join(bench, "capacity.md"), "utf8");
writeFileSync(join(docs, "capacity.md"), capacityPage(template, results));
process.stdout.write(`docs/benchmarks.md, docs/capacity.md: ${results.length} questions\n`);

function reasonOf({ question: { store, name } }: Result): string | undefined {
  return questions.find((one) => one.store === store && one.name === name)?.reason;
}
