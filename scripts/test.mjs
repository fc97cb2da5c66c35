// `npm test -- PART…`: sets up and runs the parts, all when none is named, one after the other;
// a companion runs beside its part, and its output comes when its own turn has come. A test with
// servers that fails is run once more at the end, alone: see `secondLook`.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { check } from "./checks.mjs";
import { fetchServer } from "./newer-servers.mjs";
import { companions, isTimed, matrix, order, parts } from "./parts.mjs";
import { root, run, runTool, secondsSince } from "./run.mjs";
import { build, buildLab, buildSimulation, install } from "./setup.mjs";

/** More failures than this are no accident of a busy machine. */
const MOST_UNSTEADY = 5;

const named = process.argv.slice(2);
const unknown = named.filter((part) => !order.includes(part));
if (unknown.length > 0) {
  console.error(`There is no part ${unknown.join(", ")}. The parts are: ${order.join(", ")}.`);
  process.exit(2);
}

await install();
await build();
for (const entry of (process.env.HOLDFAST_SERVERS ?? "").split(",")) {
  if (entry !== "" && !entry.includes("/")) await fetchServer(entry);
}

const reports = mkdtempSync(join(tmpdir(), "holdfast-test-"));
process.on("exit", () => rmSync(reports, { recursive: true, force: true }));

const total = { passed: 0, failed: 0 };
/** @type {string[]} */
const summary = [];
/**
 * A test that failed, or a file that did not load: then `test` is null.
 *
 * @typedef {object} Failure
 * @property {string} project
 * @property {string} file
 * @property {string | null} test
 * @property {string} text
 * @property {import("./run.mjs").RunOptions} options
 */
/** @type {Failure[]} told once more at the end: the output of a run is long */
const failures = [];
const chosen = order.filter(
  (part) => (named.length === 0 || named.includes(part)) && hasFiles(part),
);
/** @type {Map<string, ReturnType<typeof runPart>>} */
const beside = new Map();
for (const part of chosen) {
  const companion = companions[part];
  if (companion && chosen.includes(companion.part)) {
    beside.set(companion.part, runPart(companion.part, { quiet: true, isLow: companion.isLow }));
  }
  if (part === "matrix") await runMatrix();
  else await count(part, () => shown(beside.get(part) ?? runPart(part)));
}

for (const failure of await secondLook()) console.log(`\nFAILED ${titleOf(failure)}`);
console.log(`\n${summary.join("\n")}\n\n${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed > 0 ? 1 : 0;

/**
 * @param {string} title
 * @param {() => Promise<{ passed: number, failed: number }>} work
 */
async function count(title, work) {
  const startedMs = performance.now();
  console.log(`\n== ${title}`);
  const { passed, failed } = await work();
  total.passed += passed;
  total.failed += failed;
  summary.push(`${title}: ${passed} passed, ${failed} failed, ${secondsSince(startedMs)}`);
}

/**
 * @param {string} part
 * @param {import("./run.mjs").RunOptions} [options]
 */
async function runPart(part, options) {
  if (part === "check") return { passed: 0, failed: await check() };
  if (part === "simulation") await buildSimulation();
  if (part === "lab") await buildLab();
  if (part === "stores" || part === "storms" || part === "lab") {
    const { code } = await run(process.execPath, [`${root}scripts/servers.mjs`]);
    if (code !== 0) return { passed: 0, failed: 1 };
  }
  if (part === "browser") {
    // Tests that need one of these skip without it.
    await run(process.execPath, [`${root}scripts/servers.mjs`, "chromium", "redis"]);
  }
  return await runProject(part, [], options);
}

/** @param {Promise<{ passed: number, failed: number, output?: string }>} run perhaps a quiet one */
async function shown(run) {
  const result = await run;
  process.stdout.write(result.output ?? "");
  return result;
}

/** Runs the stores on newer servers. One that cannot be had is left out, and the run says so. */
async function runMatrix() {
  for (const [server, files] of Object.entries(matrix)) {
    try {
      const version = await fetchServer(server);
      const env = { HOLDFAST_SERVERS: server };
      await count(`stores on ${version}`, () => runProject("stores", files, { env }));
    } catch (error) {
      summary.push(`stores: left out, ${error instanceof Error ? error.message : error}`);
    }
  }
}

/**
 * @param {string} project
 * @param {readonly string[]} [files] parts of the names of those to run; default: all
 * @param {import("./run.mjs").RunOptions} [options]
 */
async function runProject(project, files = [], options = {}) {
  const report = join(reports, `${project}.json`);
  rmSync(report, { force: true });
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const args = ["run", `--project=${project}`, ...reporters, ...files];
  const { code, output } = await runTool("vitest/vitest.mjs", args, options);
  const counts = existsSync(report) ? JSON.parse(readFileSync(report, "utf8")) : {};
  const { env = {} } = options;
  failures.push(
    ...failuresIn(counts).map((failure) => ({ ...failure, project, options: { env } })),
  );
  const failed = counts.numFailedTests ?? 0;
  // A file that does not load or an unhandled rejection fails the run without failing a test.
  const least = code === 0 ? 0 : 1;
  return { passed: counts.numPassedTests ?? 0, failed: Math.max(failed, least), output };
}

/**
 * Runs the tests that failed once more, alone: a busy machine can keep a server or a process waiting
 * for longer than a test allows. A test that passes now counts as passed, and the run names it as
 * unsteady. Not where many failed, nor in parts whose clock is simulated: those failures are final.
 *
 * @returns {Promise<Failure[]>} those that are left
 */
async function secondLook() {
  const isHopeless = failures.length > MOST_UNSTEADY || total.failed > failures.length;
  if (isHopeless || !failures.every(({ project }) => isTimed(project))) return failures;
  const first = failures.splice(0);
  const left = [];
  for (const failure of first) {
    const { project, file, test, options } = failure;
    const only = test === null ? [] : ["--testNamePattern", `^${escaped(test)}$`];
    console.log(`\n== once more, alone: ${titleOf(failure)}`);
    const { passed, failed } = await runProject(project, [file, ...only], options);
    if (failed > 0 || passed === 0) left.push(failure);
    else summary.push(`unsteady, passed alone: ${file}: ${test ?? "the file"}`);
  }
  total.passed += first.length - left.length;
  total.failed -= first.length - left.length;
  return left;
}

/** @param {Failure} failure */
function titleOf({ file, test, text }) {
  return `${test === null ? file : `${file}: ${test}`}\n${firstLines(text)}`;
}

/** @param {string} text a part of a regular expression that means itself */
function escaped(text) {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

/** @param {any} report of vitest, as JSON */
function failuresIn(report) {
  /** @type {{ file: string, test: string | null, text: string }[]} */
  const found = [];
  for (const { name, status, message, assertionResults } of report.testResults ?? []) {
    const file = relative(root, name);
    const tests = assertionResults.filter((/** @type {any} */ test) => test.status === "failed");
    for (const { fullName, failureMessages } of tests) {
      found.push({ file, test: fullName, text: failureMessages.join("\n") });
    }
    if (status === "failed" && tests.length === 0) found.push({ file, test: null, text: message });
  }
  return found;
}

/** @param {string} text */
function firstLines(text) {
  return text.split("\n").slice(0, 15).join("\n");
}

/** @param {string} part */
function hasFiles(part) {
  return (parts[part] ?? ["package.json"]).some((pattern) => {
    const [folder = "", rest] = pattern.split("/**");
    if (!existsSync(join(root, folder))) return false;
    if (rest === undefined) return true;
    return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).some((file) =>
      file.endsWith(".test.ts"),
    );
  });
}
