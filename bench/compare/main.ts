/**
 * `npm run bench:compare -- FOLDER [ROUNDS] [WORDS]`: this build beside another one, in one process
 * and one run. FOLDER is a checkout of the other version with its `dist`; WORDS choose tasks.
 *
 * The builds take turns in short rounds, and the one that begins changes with every round, so what
 * disturbs the machine disturbs both. The figures are medians of the ratios of the rounds.
 */
import { resolve } from "node:path";
import { median, quantile } from "../contest.js";
import { readTicks, stolenSince, stolenText } from "../stolen-time.js";
import { loadBuild } from "./build.js";
import { startTasks, type Task } from "./tasks.js";

const DEFAULT_ROUNDS = 40;
const WARM_UP_ROUNDS = 3;

interface Cost {
  readonly elapsedUs: number;
  readonly cpuUs: number;
}

const [folder, rounds = `${DEFAULT_ROUNDS}`, words = ""] = process.argv.slice(2);
if (folder === undefined) {
  console.error(
    "Say which build to compare with: npm run bench:compare -- FOLDER [ROUNDS] [WORDS]",
  );
  process.exit(64);
}
const here = await loadBuild("here", process.cwd());
const there = await loadBuild("there", resolve(folder));
const { tasks, stop } = await startTasks();
console.log(
  "task                                  there µs  here µs  time ratio  CPU ratio  spread",
);
const ticks = readTicks();
try {
  for (const task of tasks.filter(({ title }) => title.includes(words))) {
    console.log(await compare(task, Number(rounds)));
  }
  console.log(`(${rounds} rounds${stolenText(stolenSince(ticks))})`);
} finally {
  await stop();
}

async function compare(task: Task, roundCount: number): Promise<string> {
  const runs = await Promise.all([task.open(there), task.open(here)]);
  const costs: [Cost[], Cost[]] = [[], []];
  for (let round = -WARM_UP_ROUNDS; round < roundCount; round += 1) {
    for (const side of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      const cost = await costOf(runs[side].run, task.pairs);
      if (round >= 0) costs[side].push(cost);
    }
  }
  for (const run of runs) await run.close();
  const ratios = (field: keyof Cost): number[] =>
    costs[1].map((cost, round) => cost[field] / (costs[0][round]?.[field] ?? Number.NaN));
  const times = ratios("elapsedUs");
  const spread = (quantile(times, 0.75) - quantile(times, 0.25)) / 2;
  const figures = [
    median(costs[0].map((cost) => cost.elapsedUs))
      .toFixed(2)
      .padStart(9),
    median(costs[1].map((cost) => cost.elapsedUs))
      .toFixed(2)
      .padStart(9),
    median(times).toFixed(3).padStart(12),
    median(ratios("cpuUs")).toFixed(3).padStart(11),
    `±${spread.toFixed(3)}`.padStart(8),
  ];
  return task.title.padEnd(36) + figures.join("");
}

async function costOf(run: () => Promise<void>, pairs: number): Promise<Cost> {
  // No forced collection: it discards compiled code, and the round would time the compiler.
  const cpu = process.cpuUsage();
  const startMs = performance.now();
  await run();
  const elapsedMs = performance.now() - startMs;
  const { user, system } = process.cpuUsage(cpu);
  return { elapsedUs: (elapsedMs * 1000) / pairs, cpuUs: (user + system) / pairs };
}
