/**
 * `npm run bench:report`: docs/benchmarks.md and its pictures, from the results and nothing else.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { chart } from "./chart.js";
import { bestOf } from "./contest.js";
import { questions } from "./questions.js";
import type { Result } from "./results.js";
import { summary } from "./summary.js";
import { figure } from "./table.js";

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
writeFileSync(join(docs, "benchmarks.md"), page(results));
process.stdout.write(`docs/benchmarks.md: ${results.length} questions\n`);

function page(all: readonly Result[]): string {
  const stores = [...new Set(all.map(({ question }) => question.store))];
  const missed = all.flatMap((result) =>
    result.goals
      .filter(({ isMet }) => !isMet)
      .map((goal) => {
        const missed = `- ${nameOf(result)}: ${goal.text}; measured ${figure(goal.value)}.`;
        return [missed, reasonOf(result)].filter(Boolean).join(" ");
      }),
  );
  const behind = all.flatMap(comparison);
  return `# Benchmarks

![Holdfast beside the best of the other packages, a line for each question](benchmarks/summary.svg)

Every figure here was written by \`npm run bench:report\` from what \`npm run bench\` measured; none
is typed in. Run both to get your own. All contestants of a question run in turn, in mixed rounds,
on servers that the run starts for itself; the first round warms up and does not count, unless each
round starts processes of its own. What counts is the ratio within a question, not the figure:
machines differ, and this one is shared.

- \`npm run bench\` runs everything, \`npm run bench -- redis handoff\` a part; \`--quick\` is a
  first look, of less than a minute.
- In the pictures a thin line shows the middle half of the rounds. Bars begin at zero; where figures
  lie far apart, the axis is logarithmic and has dots.
- Figures are medians of all rounds; spread: half of the middle half of the rounds, as a part of it.
- × floor: relative to the raw commands that no lock can do without, on the same client.
- × best peer: relative to the best of the other packages in that question. They poll; here they do
  so more often than by their defaults, in their favour.
- A contestant that failed, or let two hold the lock at once, is shown as failed and has no figure.

## Goals missed

${missed.length > 0 ? missed.join("\n") : "None."}

## Where Holdfast is not ahead

Of the best of the other packages, goal or not:

${behind.length > 0 ? behind.join("\n") : "Nowhere."}

${stores.map((store) => section(store, all)).join("\n")}
## The machine and the versions

${all[0] ? machine(all[0]) : ""}
`;
}

/** A line when the best of the other packages has the better figure. */
function comparison(result: Result): string[] {
  const { question, standings } = result;
  const [ours, peer] = (["holdfast", "peer"] as const).map((role) =>
    bestOf(role, question.better, standings),
  );
  if (!ours || !peer || Number.isNaN(peer.median)) return [];
  const isNotBehind =
    question.better === "lower" ? ours.median <= peer.median : ours.median >= peer.median;
  if (isNotBehind) return [];
  const figures = [ours, peer].map(({ name, median }) => `${name} ${figure(median)}`);
  return [`- ${nameOf(result)}: ${figures.join(", ")} ${question.unit}.`];
}

function section(store: string, all: readonly Result[]): string {
  const own = all.filter(({ question }) => question.store === store);
  return `## ${store}\n\n${own.map(part).join("\n")}`;
}

function part(result: Result): string {
  const { question, goals } = result;
  const lines = goals.map(
    ({ text, value, isMet }) => `- ${isMet ? "met" : "**missed**"}: ${text} (${figure(value)})`,
  );
  return `### ${question.title}

${[question.about, `Taken ${result.takenAt.slice(0, 10)}.`].filter(Boolean).join(" ")}

![${question.store}: ${question.title}](benchmarks/${pictureOf(result)})

${rows(result)}

${lines.join("\n")}
`;
}

function rows({ question, standings }: Result): string {
  const floor = bestOf("floor", question.better, standings);
  const peer = bestOf("peer", question.better, standings);
  const extra = [...new Set(standings.flatMap(({ more }) => Object.keys(more)))];
  const head = ["contestant", question.unit, "spread", "× floor", "× best peer", ...extra];
  const body = standings.map((one) =>
    one.failure !== null
      ? [one.name, `failed: ${one.failure}`, "", "", "", ...extra.map(() => "")]
      : [
          one.name,
          figure(one.median),
          `${Math.round(one.spread * 100)} %`,
          figure(one.median / floor.median),
          figure(one.median / peer.median),
          ...extra.map((key) => figure(one.more[key])),
        ],
  );
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [
    line(head),
    line(head.map((_, index) => (index === 0 ? "---" : "---:"))),
    ...body.map(line),
  ].join("\n");
}

function machine({ machine: facts, versions }: Result): string {
  const list = (items: Readonly<Record<string, string | number>>): string =>
    Object.entries(items)
      .map(([name, value]) => `${name} ${value}`)
      .join(", ");
  return `${list(facts)}.\n\nPackages: ${list(versions)}.`;
}

function pictureOf({ question }: Result): string {
  return `${question.store}-${question.name}.svg`;
}

function reasonOf({ question: { store, name } }: Result): string | undefined {
  return questions.find((one) => one.store === store && one.name === name)?.reason;
}

function nameOf({ question }: Result): string {
  return `${question.store}, ${question.title}`;
}
