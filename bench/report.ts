/**
 * `npm run bench:report`: docs/benchmarks.md and its pictures, from the results and nothing else.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { chart } from "./chart.js";
import { page, pictureOf } from "./page.js";
import { questions } from "./questions.js";
import type { Result } from "./results.js";
import { summary } from "./summary.js";

const bench = join(import.meta.dirname, "..", "..");
const docs = join(bench, "..", "docs");

const results: Result[] = readdirSync(join(bench, "results"))
  .filter((file) => file.endsWith(".json") && !file.endsWith(".quick.json"))
  .sort()
  .map((file) => JSON.parse(readFileSync(join(bench, "results", file), "utf8")));

const pictures = join(docs, "benchmarks");
mkdirSync(pictures, { recursive: true });
for (const result of results) writeFileSync(join(pictures, pictureOf(result)), chart(result));
writeFileSync(join(pictures, "summary.svg"), summary(results));
writeFileSync(join(docs, "benchmarks.md"), page(results, reasonOf));
process.stdout.write(`docs/benchmarks.md: ${results.length} questions\n`);

function reasonOf({ question: { store, name } }: Result): string | undefined {
  return questions.find((one) => one.store === store && one.name === name)?.reason;
}
