// The test run: `npm test -- [--all] [--times] [WORD…]`.
//
// Sets up, then runs the jobs of parts.mjs: those of `npm test`, with --all those that a change
// must pass, or those that the words select. One line shows what is running. A failed test is not
// run again; all failures are shown at the end, each with the command that repeats it. With
// --times, the slowest files are listed, too.
import { check } from "./checks.mjs";
import { Leftovers } from "./leftovers.mjs";
import { fetchServer } from "./newer-servers.mjs";
import { jobsOf, stores, words } from "./parts.mjs";
import { duration, Progress } from "./progress.mjs";
import { root, run } from "./run.mjs";
import { build, buildLab, buildSimulation, install } from "./setup.mjs";
import { runVitest } from "./vitest-job.mjs";

/** @typedef {import("./parts.mjs").Job} Job */
/** @typedef {{ title: string, text: string, repeat: string }} Failure */
/** @typedef {{ passed: number, failed: number }} Counts */

const SLOWEST = 20;
/** A history of a simulated run is long, and is shown whole. */
const MAX_LINES = 400;

const args = process.argv.slice(2);
const chosen = args.filter((word) => !word.startsWith("--"));
const unknown = args.filter((word) => ![...words, "--all", "--times"].includes(word));
if (unknown.length > 0) {
  console.error(`There is no part ${unknown.join(", ")}. The parts are: ${words.join(", ")}.`);
  process.exit(2);
}
const depth = depthOf();
// Random tests are the same in every run, except in the full one; the variable repeats a run.
const seed = process.env.HOLDFAST_SEED ?? `${depth === "full" ? Date.now() % 1e9 : 1}`;

const startedMs = performance.now();
await install();
await build();
const jobs = jobsOf(depth, chosen);
await prepare(new Set(jobs.map(({ project }) => project)));

const leftovers = new Leftovers();
// A signal ends this process before the end of the run.
process.on("exit", () => leftovers.clear());
const env = { HOLDFAST_DEPTH: depth, HOLDFAST_SEED: seed, ...leftovers.env };
const progress = new Progress();
/** @type {Failure[]} */
const failures = [];
/** @type {{ file: string, ms: number }[]} */
const times = [];
/** @type {string[]} */
const leftOut = [];
let passed = 0;
let skipped = 0;

progress.plan(jobs.length);
await Promise.all([runLane("waits"), runLane("computes")]);
await leftovers.settle();
for (const line of leftovers.clear()) {
  fail({ title: `left behind: ${line}`, text: "", repeat: `npm test -- ${args.join(" ")}` });
}
progress.stop();
report();
process.exitCode = failures.length > 0 ? 1 : 0;

/** @returns {import("./parts.mjs").Depth} */
function depthOf() {
  if (process.env.HOLDFAST_DEPTH === "full") return "full";
  return args.includes("--all") ? "all" : "quick";
}

/**
 * Builds and installs what these projects need. Tests that need a server skip without it.
 *
 * @param {Set<string>} projects
 */
async function prepare(projects) {
  if (projects.has("simulation")) await buildSimulation();
  if (projects.has("lab")) await buildLab();
  /** @type {Set<string>} */
  const servers = new Set();
  for (const project of projects) {
    if (["stores", "storms", "lab"].includes(project)) {
      for (const name of ["redis", "etcd", "postgres", "zookeeper"]) servers.add(name);
    }
    if (["browser", "package"].includes(project)) servers.add("redis");
    if (project === "browser") servers.add("chromium");
    if (project === "simulation") servers.add("spin");
  }
  for (const name of servers) await run(process.execPath, [`${root}scripts/servers.mjs`, name]);
  for (const entry of (process.env.HOLDFAST_SERVERS ?? "").split(",")) {
    if (entry !== "" && !entry.includes("/")) await fetchServer(entry);
  }
}

/** @param {Job["lane"]} lane */
async function runLane(lane) {
  const own = jobs.filter((job) => job.lane === lane);
  const isLow = lane === "computes" && own.length < jobs.length;
  for (const job of own) {
    progress.startJob();
    const sinceMs = performance.now();
    const counts = { passed: 0, failed: 0 };
    const title = await runJob(job, isLow, counts);
    passed += counts.passed;
    if (title === null) continue;
    const took = duration(performance.now() - sinceMs);
    progress.say(`${title}: ${counts.passed} passed, ${counts.failed} failed, ${took}`);
  }
}

/**
 * @param {Job} job
 * @param {boolean} isLow other jobs go first
 * @param {Counts} counts of this job
 * @returns {Promise<string | null>} its title; null where it was left out
 */
async function runJob(job, isLow, counts) {
  const { part, project, server } = job;
  if (project === "check") {
    await runChecks(isLow, counts);
    return part;
  }
  if (server === undefined) {
    await runProject(job, isLow, {}, counts);
    return stores.includes(part) ? `${part}, ${project}` : part;
  }
  try {
    const version = await fetchServer(server);
    await runProject(job, isLow, { HOLDFAST_SERVERS: server }, counts);
    return `stores on ${version}`;
  } catch (error) {
    leftOut.push(`left out: ${error instanceof Error ? error.message : error}`);
    return null;
  }
}

/**
 * @param {boolean} isLow
 * @param {Counts} counts
 */
async function runChecks(isLow, counts) {
  const listener = {
    onPlan: (/** @type {number} */ count) => progress.planFiles(count),
    onStart: (/** @type {string} */ title) => progress.start(title),
    onEnd: (/** @type {import("./checks.mjs").Checked} */ { title, code, output, command }) => {
      progress.end(title);
      if (code !== 0) return fail({ title, text: output, repeat: command }, counts);
      counts.passed += 1;
      progress.passed(1);
    },
  };
  await check(listener, { isLow, env });
}

/**
 * @param {Job} job
 * @param {boolean} isLow
 * @param {Record<string, string>} variables
 * @param {Counts} counts
 */
async function runProject({ project, files = [] }, isLow, variables, counts) {
  let hasEnded = false;
  /** @param {import("./vitest-events.mjs").Event} event */
  const onEvent = (event) => {
    switch (event.type) {
      case "planned":
        return progress.planFiles(event.files.length);
      case "started":
        return progress.start(event.file);
      case "failed": {
        const { file, test, text } = event.failure;
        const title = test === null ? file : `${file}: ${test}`;
        return fail({ title, text, repeat: repeatOf(project, file, test, variables) }, counts);
      }
      case "ended": {
        const { file, ms } = event;
        hasEnded = true;
        counts.passed += event.passed;
        skipped += event.skipped;
        times.push({ file: variables.HOLDFAST_SERVERS ? `${file} (newer)` : file, ms });
        progress.passed(event.passed);
        return progress.end(file);
      }
    }
  };
  const { code, output } = await runVitest(["run", `--project=${project}`, ...files], onEvent, {
    isLow,
    env: { ...env, ...variables },
  });
  if (counts.failed > 0 || (code === 0 && hasEnded)) return;
  const repeat = repeatOf(project, files.join(" "), null, variables);
  fail({ title: `${project} ended with ${code}`, text: output, repeat }, counts);
}

/**
 * @param {Failure} failure
 * @param {Counts} [counts] of its job
 */
function fail(failure, counts) {
  failures.push(failure);
  if (counts) counts.failed += 1;
  progress.failed();
  progress.say(`FAILED ${failure.title}`);
}

/**
 * @param {string} project
 * @param {string} files
 * @param {string | null} test
 * @param {Record<string, string>} variables
 */
function repeatOf(project, files, test, variables) {
  const set = {
    ...(depth !== "all" && { HOLDFAST_DEPTH: depth }),
    HOLDFAST_SEED: seed,
    ...variables,
  };
  const values = Object.entries(set).map(([name, value]) => `${name}=${value}`);
  const pattern = test?.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&").replaceAll("'", ".");
  const only = pattern === undefined ? "" : ` -t '^${pattern}$'`;
  return `${values.join(" ")} npx vitest run --project=${project} ${files}${only}`;
}

function report() {
  for (const { title, text, repeat } of failures) {
    const lines = text.split("\n");
    const cut = lines.length > MAX_LINES ? [`… ${lines.length - MAX_LINES} more lines`] : [];
    const shown = [...lines.slice(0, MAX_LINES), ...cut].map((line) => `  ${line}`);
    console.log(`\nFAILED ${title}\n${shown.join("\n")}\n  to repeat it: ${repeat}`);
  }
  if (args.includes("--times")) {
    const slowest = times.sort((a, b) => b.ms - a.ms).slice(0, SLOWEST);
    for (const { file, ms } of slowest)
      console.log(`${(ms / 1000).toFixed(1).padStart(7)} s ${file}`);
  }
  for (const line of leftOut) console.log(line);
  console.log(`\n${duration(performance.now() - startedMs)}, seed ${seed}, ${skipped} skipped`);
  console.log(`${passed} passed, ${failures.length} failed`);
}
