// The page of the dashboard as a module: see embed.mjs. The page consists of plain modules, a file
// for each source, and of one file that brings Preact and htm. A browser loads them as they are.
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { root, runTool } from "./run.mjs";

const folder = `${root}src/dashboard/page/`;
/** What the page is made of and by, besides the sources. */
const TOOLS = ["package-lock.json", "tsconfig.json", "scripts/embed-page.mjs"];

/**
 * The text of the module; null if the one there is was made from the same files: to compile the
 * page takes a second.
 *
 * @param {string} current
 */
export async function pageModule(current) {
  const sum = createHash("sha256");
  const sources = readdirSync(folder).map((name) => join(folder, name));
  for (const file of [...sources.sort(), ...TOOLS.map((name) => join(root, name))]) {
    sum.update(`${basename(file)}\0`).update(readFileSync(file));
  }
  const header = [
    "// Made from page/* by scripts/embed.mjs: edit those.",
    `// The sources had the hash ${sum.digest("hex")}.`,
    "",
  ].join("\n");
  if (current.startsWith(header)) return null;
  const files = new Map([...(await compiled()), ...copied(), ...libraries()]);
  const texts = [...files].sort().map(([name, text]) => {
    return `  ["${name}", \`${text.replace(/[`\\]|\$\{/g, "\\$&")}\`],\n`;
  });
  return [
    header,
    "export const FILES: ReadonlyMap<string, string> = new Map([\n",
    ...texts,
    "]);\n",
  ].join("");
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
