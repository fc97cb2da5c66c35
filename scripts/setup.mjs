// Installs and builds all that is stale. Needs only Node and npm: every script starts here.
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { bundle } from "./bundle.mjs";
import { embed } from "./embed.mjs";
import { root, run, runTool, secondsSince } from "./run.mjs";

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(`Holdfast needs Node 20.19 or newer; this is ${process.version}.\n`);
  process.exit(1);
}

/** Installs the dependencies unless they match the lock file, and writes the generated modules. */
export async function install() {
  const fresh = hash(["package-lock.json"]) + process.platform + process.arch;
  await unlessStamped("node_modules/.holdfast-stamp", fresh, "node_modules", "dependencies", () => {
    return run("npm", ["ci", "--include=dev", "--no-audit", "--no-fund"], { quiet: true });
  });
  await embed();
}

/** Installs the peers that the benchmarks compare with, apart from everything else. */
export async function installBench() {
  const fresh = hash(["bench/package-lock.json"]) + process.platform + process.arch;
  const product = "bench/node_modules";
  await unlessStamped(`${product}/.holdfast-stamp`, fresh, product, "the peers", async () => {
    const args = ["ci", "--prefix", "bench", "--no-audit", "--no-fund"];
    const result = await run("npm", args, { quiet: true });
    // The package under test is this one, and its entry in a lock file would age with every change.
    if (result.code === 0) symlinkSync("../..", join(root, product, "holdfast"), "dir");
    return result;
  });
}

/** Builds the package: src to dist, in few files. */
export const build = () => compile("dist", "tsconfig.build.json", ["src"], bundle);

/** Builds what the simulation runs: src and simulation to build. */
export const buildSimulation = () =>
  compile("build", "tsconfig.simulation.json", ["src", "simulation", "test/fixtures"]);

/** Builds the lab, with the servers and the faults of the tests: to lab/build. */
export async function buildLab() {
  const args = ["--project", "tsconfig.lab.json"];
  const { code, output } = await runTool("typescript/bin/tsc", args, { quiet: true });
  if (code !== 0) throw new Error(output);
  const source = "test/servers/clock-shift.c";
  copyFileSync(join(root, source), join(root, "lab/build", source));
}

/**
 * Compiles beside the old output and swaps at the end, so that a failed build leaves the old one
 * and a program that starts meanwhile never sees half of a new one.
 *
 * @param {string} target
 * @param {string} project
 * @param {readonly string[]} sources
 * @param {(folder: string) => Promise<void>} [finish] what is left to do in the new output
 */
async function compile(target, project, sources, finish = async () => {}) {
  const files = sources.flatMap(sourceFiles);
  const manifests = ["package.json", "package-lock.json"];
  const rules = ["tsconfig.json", project, ...manifests, "scripts/bundle.mjs"];
  const fresh = hash([...rules, ...files]);
  await unlessStamped(`node_modules/.holdfast-${target}`, fresh, target, target, async () => {
    const staging = join(root, `.${target}-${process.pid}`);
    try {
      const args = ["--project", project, "--outDir", staging, "--noEmitOnError"];
      const result = await runTool("typescript/bin/tsc", args, { quiet: true });
      if (result.code === 0) {
        await finish(staging);
        rmSync(join(root, target), { recursive: true, force: true });
        renameSync(staging, join(root, target));
      }
      return result;
    } finally {
      rmSync(staging, { recursive: true, force: true });
    }
  });
}

/**
 * Does the work unless its stamp, a file below node_modules, says it was done for this input.
 *
 * @param {string} stamp
 * @param {string} fresh
 * @param {string} product the file or folder that the work makes
 * @param {string} title
 * @param {() => Promise<{ code: number, output: string }>} work
 */
async function unlessStamped(stamp, fresh, product, title, work) {
  const stampFile = join(root, stamp);
  const done = existsSync(stampFile) && readFileSync(stampFile, "utf8") === fresh;
  if (done && existsSync(join(root, product))) return;
  const startedMs = performance.now();
  process.stderr.write(`set-up: ${title} ...\n`);
  const { code, output } = await work();
  if (code !== 0) {
    const lines = output.trimEnd().split("\n").slice(0, 40);
    process.stderr.write(`${lines.join("\n")}\nset-up: ${title} failed with exit code ${code}\n`);
    process.exit(1);
  }
  writeFileSync(stampFile, fresh);
  process.stderr.write(`set-up: ${title} ready in ${secondsSince(startedMs)}\n`);
}

/** @param {string} folder */
function sourceFiles(folder) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith(".test.ts"))
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length))
    .sort();
}

/** @param {readonly string[]} files */
function hash(files) {
  const sum = createHash("sha256");
  for (const file of files) sum.update(`${file}\0`).update(readFileSync(join(root, file)));
  return sum.digest("hex");
}

if (realpathSync(process.argv[1] ?? "") === import.meta.filename) {
  await install();
  await build();
}
