/** `npm run simulate`: runs seeds and prints the first violation and the command to repeat it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { sliceOf, type Violation } from "./checkers/violation.js";
import { foundAt } from "./mutants/found-at.js";
import type { Catch } from "./mutants/hunt.js";
import { mutants } from "./mutants/list.js";
import type { Family, PlanOptions } from "./plan.js";
import { runSearch } from "./search/run-search.js";
import { judge, type Verdict } from "./verdict.js";

const USAGE = `npm run simulate -- [options]
  --seed N        the seed to run, or the first of several (default: any)
  --count N       how many seeds to run, one after the other (default: 1 with --seed, else 200)
  --clients N     how many programs contend (default: 2 to 4, as the seed says)
  --minutes N     how long they do, in simulated time (default: as the seed says)
  --quorum        several nodes decide by majority, not one store
  --sequencer     clients queue with entries that their sessions keep, as in etcd
  --zookeeper     the same, in a ZooKeeper of three servers
  --hash          print the hash of every history
  --history       print every history
  --search        go through every order of events in worlds so small that this is possible;
                  or only in those whose title contains the given words
  --depth N       with --search: how many moves a path may have (default: as in a test run)
  --without RULE  with --search: leave out a rule of the small client
  --mutants       plant every known bug and show which seed finds it; or only those
                  whose title contains the given words
  --write         with --mutants: keep the seeds that find them, for the next run`;

const { values, positionals } = parse();

if (values.help) console.log(USAGE);
else if (values.search) process.exitCode = search(positionals.join(" "));
else if (values.mutants) process.exitCode = await runMutants(positionals.join(" "));
else process.exitCode = await runSeeds();

async function runSeeds(): Promise<number> {
  const firstSeed = wholeOf("seed", 0) ?? Math.floor(Math.random() * 2 ** 30);
  const count = wholeOf("count", 1) ?? (values.seed === undefined ? 200 : 1);
  const clients = wholeOf("clients", 1);
  const minutes = numberOf("minutes", 0.01);
  const options: PlanOptions = {
    family: familyOf(),
    ...(clients === undefined ? {} : { clients }),
    ...(minutes === undefined ? {} : { minutes }),
  };
  const startedMs = performance.now();
  let steps = 0;
  for (let seed = firstSeed; seed < firstSeed + count; seed += 1) {
    const verdict = await judge(seed, options);
    steps += verdict.steps;
    if (values.history) console.log(verdict.history.lines().join("\n"));
    if (values.hash) console.log(`${seed} ${verdict.history.hash()}`);
    const [violation] = verdict.violations;
    if (!violation) continue;
    report(verdict, violation, options);
    return 1;
  }
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  const range =
    count === 1 ? `seed ${firstSeed}` : `seeds ${firstSeed} to ${firstSeed + count - 1}`;
  console.log(`${range}: ${steps} steps in ${seconds} s, nothing wrong`);
  return 0;
}

function report(verdict: Verdict, violation: Violation, planned: PlanOptions): void {
  const { family, clients, minutes } = planned;
  const { plan, history, violations } = verdict;
  const options = [
    family === "arbiter" ? "" : `--${family} `,
    `--seed ${plan.seed}`,
    clients === undefined ? "" : ` --clients ${clients}`,
    minutes === undefined ? "" : ` --minutes ${minutes}`,
  ];
  console.log(`seed ${plan.seed} (${plan.profile}) violates ${violation.checker}:`);
  console.log(`  ${violation.message}`);
  if (violations.length > 1) console.log(`  and ${violations.length - 1} more`);
  console.log(`the part of the history that shows it:`);
  for (const line of sliceOf(history.entries(), violation)) console.log(`  ${line}`);
  console.log(`to see it again: npm run simulate -- ${options.join("")}`);
}

function search(words: string): number {
  const family = values.quorum || values.sequencer ? familyOf() : undefined;
  const depth = wholeOf("depth", 1);
  return runSearch({ family, words, depth, without: values.without ?? null }) === 0 ? 0 : 1;
}

async function runMutants(words: string): Promise<number> {
  const chosen = mutants.filter(({ title }) => title.includes(words));
  // Imported only here: a copy of the build with a mutant has no packages beside it.
  const { hunt } = await import("./mutants/hunt.js");
  const catches = await hunt(chosen, (found) => console.log(found.line));
  const escaped = catches.filter(({ seed }) => seed === null).length;
  if (values.write) remember(catches);
  console.log(`${chosen.length - escaped} of ${chosen.length} mutants found`);
  return escaped === 0 ? 0 : 1;
}

/** The next run tries these seeds first. */
function remember(catches: readonly Catch[]): void {
  const file = join(import.meta.dirname, "../../simulation/mutants/found-at.ts");
  const known = new Set(mutants.map(({ title }) => title));
  const found = catches.flatMap(({ title, seed }) => (seed === null ? [] : [[title, seed]]));
  const all = { ...foundAt, ...Object.fromEntries(found) };
  const lines = Object.entries(all)
    .filter(([title]) => known.has(title))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([title, seed]) => `  ${JSON.stringify(title)}: ${seed},\n`);
  const head =
    "/** Which seed found a mutant: written by `npm run simulate -- --mutants --write`. */\n";
  const type = "export const foundAt: Readonly<Record<string, number>>";
  writeFileSync(file, `${head}${type} = {\n${lines.join("")}};\n`);
}

function parse() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        seed: { type: "string" },
        count: { type: "string" },
        clients: { type: "string" },
        minutes: { type: "string" },
        quorum: { type: "boolean", default: false },
        sequencer: { type: "boolean", default: false },
        zookeeper: { type: "boolean", default: false },
        hash: { type: "boolean", default: false },
        history: { type: "boolean", default: false },
        search: { type: "boolean", default: false },
        depth: { type: "string" },
        without: { type: "string" },
        mutants: { type: "boolean", default: false },
        write: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
      },
    });
  } catch (error) {
    return refuse((error as Error).message);
  }
}

function familyOf(): Family {
  if (values.zookeeper) return "zookeeper";
  if (values.sequencer) return "sequencer";
  return values.quorum ? "quorum" : "arbiter";
}

function wholeOf(
  option: "seed" | "count" | "clients" | "depth",
  least: number,
): number | undefined {
  const number = numberOf(option, least);
  if (number === undefined || Number.isSafeInteger(number)) return number;
  return refuse(`--${option} must be a whole number, not "${values[option]}".`);
}

function numberOf(
  option: "seed" | "count" | "clients" | "minutes" | "depth",
  least: number,
): number | undefined {
  const text = values[option];
  if (text === undefined) return undefined;
  const number = text.trim() === "" ? Number.NaN : Number(text);
  if (Number.isFinite(number) && number >= least) return number;
  return refuse(`--${option} must be a number from ${least}, not "${text}".`);
}

function refuse(message: string): never {
  console.error(`${message}\n${USAGE}`);
  process.exit(2);
}
