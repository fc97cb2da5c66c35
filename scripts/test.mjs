// `npm test -- PART…`: sets up and runs the parts one after the other, all when none is named.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { check } from "./checks.mjs";
import { fetchServer } from "./newer-servers.mjs";
import { matrix, parts } from "./parts.mjs";
import { root, run, runTool, secondsSince } from "./run.mjs";
import { build, buildSimulation, install } from "./setup.mjs";

const known = ["check", ...Object.keys(parts), "matrix"];
const named = process.argv.slice(2);
const unknown = named.filter((part) => !known.includes(part));
if (unknown.length > 0) {
  console.error(`There is no part ${unknown.join(", ")}. The parts are: ${known.join(", ")}.`);
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
for (const part of known) {
  if ((named.length > 0 && !named.includes(part)) || !hasFiles(part)) continue;
  if (part === "matrix") await runMatrix();
  else await count(part, () => runPart(part));
}

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

/** @param {string} part */
async function runPart(part) {
  if (part === "check") return { passed: 0, failed: await check() };
  if (part === "simulation") await buildSimulation();
  if (part === "stores" || part === "storms") {
    const { code } = await run(process.execPath, [`${root}scripts/servers.mjs`]);
    if (code !== 0) return { passed: 0, failed: 1 };
  }
  return await runProject(part);
}

/** Runs the stores on newer servers. One that cannot be had is left out, and the run says so. */
async function runMatrix() {
  for (const [server, files] of Object.entries(matrix)) {
    try {
      const version = await fetchServer(server);
      const env = { HOLDFAST_SERVERS: server };
      await count(`stores on ${version}`, () => runProject("stores", files, env));
    } catch (error) {
      summary.push(`stores: left out, ${error instanceof Error ? error.message : error}`);
    }
  }
}

/**
 * @param {string} project
 * @param {readonly string[]} [files] parts of the names of those to run; default: all
 * @param {Readonly<Record<string, string>>} [env]
 */
async function runProject(project, files = [], env = {}) {
  const report = join(reports, `${project}.json`);
  rmSync(report, { force: true });
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const args = ["run", `--project=${project}`, ...reporters, ...files];
  const { code } = await runTool("vitest/vitest.mjs", args, { env });
  const counts = existsSync(report) ? JSON.parse(readFileSync(report, "utf8")) : {};
  const failed = counts.numFailedTests ?? 0;
  // A file that does not load or an unhandled rejection fails the run without failing a test.
  return { passed: counts.numPassedTests ?? 0, failed: code === 0 ? failed : Math.max(failed, 1) };
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
