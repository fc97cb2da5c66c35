// `npm test -- PART…`: sets up and runs the parts, all when none is named, one after the other;
// a companion runs beside its part, and its output comes when its own turn has come. A test with
// servers that fails is run once more at the end, alone: see `secondLook`.
// With --record, the figures of the run go into docs/testing.md.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { check } from "./checks.mjs";
import { fetchServer } from "./newer-servers.mjs";
import { companions, isTimed, matrix, order, parts } from "./parts.mjs";
import { recordRun, sumOf } from "./recorded-run.mjs";
import { root, run, runTool, tenthsSince } from "./run.mjs";
import { build, buildLab, buildSimulation, install } from "./setup.mjs";

/** More failures than this are no accident of a busy machine. */
const MOST_UNSTEADY = 5;

const isRecorded = process.argv.includes("--record");
const named = process.argv.slice(2).filter((word) => word !== "--record");
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

/** @typedef {import("./recorded-run.mjs").PartResult} PartResult */
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
/**
 * The end of a part. Figures are what its tests noted (test/fixtures/figures.ts), added up.
 *
 * @typedef {object} Outcome
 * @property {number} passed
 * @property {number} failed
 * @property {number} [skipped]
 * @property {Readonly<Record<string, number>>} [figures]
 * @property {readonly Failure[]} [failures]
 * @property {string} [output] of a quiet run
 */
/** @type {PartResult[]} */
const results = [];
/** @type {{ failure: Failure, result: PartResult }[]} told once more: the output is long */
let failures = [];
/** @type {string[]} */
const leftOut = [];
/** @type {string[]} */
const unsteady = [];
const chosen = order.filter(
  (part) => (named.length === 0 || named.includes(part)) && hasFiles(part),
);
const startedMs = performance.now();
/** @type {Map<string, ReturnType<typeof timed>>} */
const beside = new Map();
for (const part of chosen) {
  const companion = companions[part];
  if (companion && chosen.includes(companion.part)) {
    const options = { quiet: true, isLow: companion.isLow };
    beside.set(companion.part, timed(runPart(companion.part, options)));
  }
  if (part === "matrix") await runMatrix();
  else await count(part, () => beside.get(part) ?? timed(runPart(part)));
}

await secondLook();
for (const { failure } of failures) console.log(`\nFAILED ${titleOf(failure)}`);
const lines = results.map(({ title, passed, failed, seconds }) => {
  return `${title}: ${passed} passed, ${failed} failed, ${seconds} s`;
});
const passed = sumOf(results, "passed");
const failed = sumOf(results, "failed");
const remarks = unsteady.map((test) => `unsteady, passed alone: ${test}`);
console.log(`\n${[...lines, ...leftOut, ...remarks].join("\n")}`);
console.log(`\n${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
if (isRecorded) {
  await recordRun({ named, results, leftOut, unsteady, seconds: tenthsSince(startedMs) });
}

/**
 * @param {string} title
 * @param {() => ReturnType<typeof timed>} work
 */
async function count(title, work) {
  console.log(`\n== ${title}`);
  const { output = "", failures: failed = [], ...counts } = await work();
  process.stdout.write(output);
  const result = { title, skipped: 0, figures: {}, ...counts };
  results.push(result);
  failures.push(...failed.map((failure) => ({ failure, result })));
}

/** @param {Promise<Outcome>} work */
async function timed(work) {
  const startedMs = performance.now();
  return { ...(await work), seconds: tenthsSince(startedMs) };
}

/**
 * @param {string} part
 * @param {import("./run.mjs").RunOptions} [options]
 * @returns {Promise<Outcome>}
 */
async function runPart(part, options) {
  if (part === "check") return { passed: 0, failed: await check() };
  if (part === "simulation") await buildSimulation();
  if (part === "lab") await buildLab();
  if (part === "stores" || part === "storms" || part === "lab") {
    const { code } = await run(process.execPath, [`${root}scripts/servers.mjs`]);
    if (code !== 0) return { passed: 0, failed: 1 };
  }
  // Tests that need one of these skip without it.
  if (part === "browser") await installServers("chromium", "redis");
  if (part === "package") await installServers("redis");
  return await runProject(part, [], options);
}

/** @param {string[]} names */
async function installServers(...names) {
  await run(process.execPath, [`${root}scripts/servers.mjs`, ...names]);
}

/** Runs the stores on newer servers. One that cannot be had is left out, and the run says so. */
async function runMatrix() {
  for (const [server, files] of Object.entries(matrix)) {
    try {
      const version = await fetchServer(server);
      const env = { HOLDFAST_SERVERS: server };
      await count(`stores on ${version}`, () => timed(runProject("stores", files, { env })));
    } catch (error) {
      leftOut.push(`stores: left out, ${error instanceof Error ? error.message : error}`);
    }
  }
}

/**
 * @param {string} project
 * @param {readonly string[]} [files] parts of the names of those to run; default: all
 * @param {import("./run.mjs").RunOptions} [options]
 * @returns {Promise<Outcome>}
 */
async function runProject(project, files = [], options = {}) {
  const file = join(reports, `${project}.json`);
  const errorsFile = `${file}.errors`;
  for (const one of [file, errorsFile]) rmSync(one, { force: true });
  const { env = {} } = options;
  const args = ["run", `--project=${project}`, ...files];
  const reporting = { ...options, env: { ...env, HOLDFAST_REPORT: file } };
  const { code, output } = await runTool("vitest/vitest.mjs", args, reporting);
  const report = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
  const failures = failuresIn(report).map((failure) => ({ ...failure, project, options: { env } }));
  // An unhandled rejection, or the end of a worker, fails the run without failing a test.
  const errors = existsSync(errorsFile) ? Number(readFileSync(errorsFile, "utf8")) : 0;
  const least = code === 0 ? 0 : 1;
  return {
    passed: report.numPassedTests ?? 0,
    failed: Math.max(failures.length + errors, least),
    skipped: report.numPendingTests ?? 0,
    figures: figuresIn(report),
    failures,
    output,
  };
}

/**
 * Runs the tests that failed once more, alone: a busy machine can keep a server or a process
 * waiting for longer than a test allows. A test that passes now counts as passed, and the run names
 * it as unsteady. Not where many failed, nor in parts whose clock is simulated: those failures are
 * final.
 */
async function secondLook() {
  const isHopeless = failures.length > MOST_UNSTEADY || sumOf(results, "failed") > failures.length;
  if (isHopeless || !failures.every(({ failure }) => isTimed(failure.project))) return;
  const first = failures;
  failures = [];
  for (const { failure, result } of first) {
    const { project, file, test, options } = failure;
    const only = test === null ? [] : ["--testNamePattern", `^${escaped(test)}$`];
    console.log(`\n== once more, alone: ${titleOf(failure)}`);
    const { passed, failed } = await runProject(project, [file, ...only], options);
    if (failed > 0 || passed === 0) {
      failures.push({ failure, result });
      continue;
    }
    result.passed += 1;
    result.failed -= 1;
    unsteady.push(`${file}: ${test ?? "the file"}`);
  }
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
    // The worker of the file ended before these: they count as neither passed nor skipped.
    const lost = assertionResults.filter((/** @type {any} */ test) => test.status === "pending");
    const text = lost.length > 0 ? `${lost.length} tests did not end` : message;
    const isFailed = lost.length > 0 || (status === "failed" && tests.length === 0);
    if (isFailed) found.push({ file, test: null, text });
  }
  return found;
}

/** @param {any} report of vitest, as JSON */
function figuresIn(report) {
  /** @type {Record<string, number>} */
  const sums = {};
  for (const { assertionResults } of report.testResults ?? []) {
    for (const { status, meta } of assertionResults) {
      if (status !== "passed") continue;
      for (const [name, value] of Object.entries(meta?.figures ?? {})) {
        sums[name] = (sums[name] ?? 0) + value;
      }
    }
  }
  return sums;
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
