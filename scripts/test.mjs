// `npm test -- PART…`: sets up and runs the parts one after the other, all when none is named.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { check } from "./checks.mjs";
import { parts } from "./parts.mjs";
import { root, run, runTool, secondsSince } from "./run.mjs";
import { build, buildSimulation, install } from "./setup.mjs";

const known = ["check", ...Object.keys(parts)];
const named = process.argv.slice(2);
const unknown = named.filter((part) => !known.includes(part));
if (unknown.length > 0) {
  console.error(`There is no part ${unknown.join(", ")}. The parts are: ${known.join(", ")}.`);
  process.exit(2);
}

await install();
await build();

const reports = mkdtempSync(join(tmpdir(), "holdfast-test-"));
process.on("exit", () => rmSync(reports, { recursive: true, force: true }));

const total = { passed: 0, failed: 0 };
const times = [];
for (const part of known) {
  if ((named.length > 0 && !named.includes(part)) || !hasFiles(part)) continue;
  const startedMs = performance.now();
  console.log(`\n== ${part}`);
  const { passed, failed } = await runPart(part);
  total.passed += passed;
  total.failed += failed;
  times.push(`${part}: ${secondsSince(startedMs)}${failed > 0 ? `, ${failed} failed` : ""}`);
}

console.log(`\n${times.join("\n")}\n\n${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed > 0 ? 1 : 0;

/** @param {string} part */
async function runPart(part) {
  if (part === "check") return { passed: 0, failed: await check() };
  if (part === "simulation") await buildSimulation();
  if (part === "stores" || part === "storms") {
    const { code } = await run(process.execPath, [`${root}scripts/servers.mjs`]);
    if (code !== 0) return { passed: 0, failed: 1 };
  }

  const report = join(reports, `${part}.json`);
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const { code } = await runTool("vitest/vitest.mjs", ["run", `--project=${part}`, ...reporters]);
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
