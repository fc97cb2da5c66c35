// Writes the page of the dashboard into a module, because nothing is read from disk at run time: a
// bundler would leave the files behind. `npm run page` after a change of src/dashboard/page;
// `--check` only compares.
//
// The page consists of plain modules, a file for each source, and of one file that brings Preact
// and htm. A browser loads them as they are.
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { root, runTool } from "./run.mjs";

const folder = `${root}src/dashboard/page/`;
const target = `${root}src/dashboard/page.generated.ts`;

async function embedded() {
  const files = new Map([...(await compiled()), ...copied(), ...libraries()]);
  const texts = [...files].sort().map(([name, text]) => {
    return `  ["${name}", \`${text.replace(/[`\\]|\$\{/g, "\\$&")}\`],`;
  });
  return [
    "// Written by `npm run page` from page/*: change those, and run it.",
    "export const FILES: ReadonlyMap<string, string> = new Map([",
    ...texts,
    "]);",
    "",
  ].join("\n");
}

/** The modules of the page, as browsers take them. */
async function compiled() {
  const output = mkdtempSync(join(tmpdir(), "holdfast-page-"));
  try {
    const args = ["--project", folder, "--outDir", output, "--noEmitOnError"];
    const result = await runTool("typescript/bin/tsc", args, { quiet: true });
    if (result.code !== 0) throw new Error(result.output);
    const modules = join(output, "dashboard/page");
    return filesIn(modules, (name) => name.endsWith(".js"));
  } finally {
    rmSync(output, { recursive: true, force: true });
  }
}

function copied() {
  return filesIn(folder, (name) => /\.(html|css|svg)$/.test(name));
}

/**
 * @param {string} from
 * @param {(name: string) => boolean} isWanted
 * @returns {[string, string][]}
 */
function filesIn(from, isWanted) {
  const names = readdirSync(from).filter(isWanted);
  return names.map((name) => [name, readFileSync(join(from, name), "utf8")]);
}

/**
 * The file of htm that has Preact in it, and the licence of each.
 *
 * @returns {[string, string][]}
 */
function libraries() {
  const standalone = fileURLToPath(import.meta.resolve("htm/preact/standalone"));
  const home = dirname(dirname(standalone));
  const { version } = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));
  const head = `// Preact and htm, from htm ${version}. Their licences: licences.txt\n`;
  const licences = [join(folder, "licences.txt"), join(home, "LICENSE")];
  return [
    ["preact.js", head + readFileSync(standalone, "utf8")],
    ["licences.txt", licences.map((file) => readFileSync(file, "utf8")).join("")],
  ];
}

if (realpathSync(process.argv[1] ?? "") === import.meta.filename) {
  const text = await embedded();
  if (!process.argv.includes("--check")) writeFileSync(target, text);
  if (!existsSync(target) || readFileSync(target, "utf8") !== text) {
    console.error("src/dashboard/page.generated.ts is stale: npm run page");
    process.exitCode = 1;
  }
}
