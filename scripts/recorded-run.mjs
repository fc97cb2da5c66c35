// The figures of a test run, which `npm test -- --record` keeps for docs/testing.md.
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { versionOf } from "./newer-servers.mjs";
import { root, runTool } from "./run.mjs";

/**
 * @typedef {import("../test/fixtures/recorded-run.js").PartResult} PartResult
 * @typedef {import("../test/fixtures/recorded-run.js").RecordedRun} RecordedRun
 */

const FILE = join(root, "test/recorded-run.json");

/**
 * Writes the record, and the page from it.
 *
 * @param {object} run
 * @param {readonly string[]} run.named the parts that were named; empty for all
 * @param {readonly PartResult[]} run.results
 * @param {readonly string[]} run.leftOut
 * @param {readonly string[]} run.unsteady
 * @param {number} run.seconds
 */
export async function recordRun({ named, ...run }) {
  const whole = process.env.HOLDFAST_FULL ? "npm run test:full" : "npm test";
  /** @type {RecordedRun} */
  const record = {
    command: named.length === 0 ? whole : `${whole} -- ${named.join(" ")}`,
    date: new Date().toISOString().slice(0, 10),
    node: process.versions.node,
    cores: availableParallelism(),
    servers: await installedServers(),
    ...run,
  };
  writeFileSync(FILE, JSON.stringify(record));
  await write(FILE, "@biomejs/biome/bin/biome", ["check", "--write", FILE]);
  const page = ["run", "--project=unit", "test/testing-page.test.ts", "--update"];
  await write("docs/testing.md", "vitest/vitest.mjs", page);
  console.log("recorded: test/recorded-run.json, docs/testing.md");
}

/**
 * @param {string} file
 * @param {string} tool
 * @param {string[]} args
 */
async function write(file, tool, args) {
  const { code, output } = await runTool(tool, args, { quiet: true });
  if (code !== 0) throw new Error(`${file} could not be written:\n${output}`);
}

/**
 * @param {readonly PartResult[]} results
 * @param {"passed" | "failed" | "skipped"} count
 */
export function sumOf(results, count) {
  return results.reduce((sum, result) => sum + result[count], 0);
}

/** The servers of the distribution that the tests start; one that is missing is left out. */
async function installedServers() {
  const folder = "/usr/lib/postgresql";
  const postgres = existsSync(folder) ? readdirSync(folder) : [];
  const programs = [
    "redis-server",
    "etcd",
    ...postgres.map((version) => join(folder, version, "bin/postgres")),
  ];
  const versions = await Promise.all(programs.map((one) => versionOf(one).catch(() => null)));
  return [...versions.filter((version) => version !== null), ...zookeepers()];
}

/** Debian names the version in a link to the jar. */
function zookeepers() {
  const folder = "/usr/share/java";
  const files = existsSync(folder) ? readdirSync(folder) : [];
  return files.flatMap((file) => {
    const [, version] = /^zookeeper-([\d.]+)\.jar$/.exec(file) ?? [];
    return version === undefined ? [] : [`ZooKeeper ${version}`];
  });
}
