// Bundles the output of tsc, which has a file for each source, into the published files: one for
// each entry point and for each part that several of them share, and only those declarations that
// an entry point leads to. Node takes longer to find and read a hundred small modules than to run
// them.
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { root } from "./run.mjs";

/** Programs that the package starts as processes or threads, and modules that it loads late. */
const PROGRAMS = [
  "cli/main.js",
  "conformance/child.js",
  "cli/demo/run-demo.js",
  "cli/demo/worker.js",
  "thread/thread-store.js",
  "thread/holdfast-thread.js",
];

/**
 * All that a program loads with its first lock, whichever its store is, is in one file. The ledger
 * runs in the stores of one machine only; peers are loaded with a URL, and doctors on demand.
 */
const NOT_CORE = [
  /^[/\\]((?:stores|families)[/\\][\w-]+|cli|compat|conformance|cron|dashboard|nest|thread)[/\\]/,
  /^[/\\]telemetry[/\\]/,
  /[/\\](doctor|examination|ledger|upkeep|peers)\.js$/,
];

/** What several verbs of the command use, apart from the demo, which starts files of its own. */
const COMMAND = {
  name: "command",
  test: /[/\\]cli[/\\](?!demo[/\\]|main\.)/,
  minShareCount: 2,
};

/** Half the size, with all names and with lines that a stack trace can point at. */
const SHORT = { minifyWhitespace: true, lineLimit: 120 };

/** @param {string} folder the build: names in its own path do not count */
const core = (folder) => ({
  name: "core",
  test: (/** @type {string} */ id) =>
    !NOT_CORE.some((pattern) => pattern.test(id.slice(folder.length))),
});

/**
 * Replaces the files of a build.
 *
 * @param {string} folder the build
 */
export async function bundle(folder) {
  const { exports, peerDependencies } = JSON.parse(readFileSync(`${root}package.json`, "utf8"));
  const entries = publicEntries(exports);
  const clients = Object.keys(peerDependencies);
  const modules = [...entries.map((name) => `${name}.js`), ...PROGRAMS];
  // Not at the top: the set-up itself begins before anything is installed.
  const { rolldown } = await import("rolldown");
  const { transform } = await import("esbuild");
  const build = await rolldown({
    input: Object.fromEntries(modules.map((file) => [file, join(folder, file)])),
    external: clients,
    cwd: folder,
    platform: "node",
  });
  const { output } = await build.generate({
    dir: folder,
    format: "esm",
    entryFileNames: "[name]",
    chunkFileNames: "shared/[name].js",
    codeSplitting: { groups: [{ ...core(folder), minShareCount: 2, priority: 1 }, COMMAND] },
  });
  await build.close();
  const declarations = reachable(entries.map((name) => join(folder, `${name}.d.ts`)));
  for (const file of filesIn(folder)) if (!declarations.has(file)) rmSync(file);
  for (const file of output) {
    if (file.type !== "chunk") continue;
    const path = join(folder, file.fileName);
    const { code } = await transform(file.code, SHORT);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, code);
  }
  removeEmptyFolders(folder);
}

/**
 * The modules that package.json exports, without their endings.
 *
 * @param {Record<string, string | { default: string }>} exports
 */
function publicEntries(exports) {
  return Object.values(exports).flatMap((target) =>
    typeof target === "string" ? [] : [target.default.replace(/^\.\/dist\/|\.js$/g, "")],
  );
}

/**
 * The declarations that some lead to, themselves included.
 *
 * @param {readonly string[]} files
 */
function reachable(files) {
  const found = new Set(files);
  for (const file of found) {
    for (const [, path = ""] of readFileSync(file, "utf8").matchAll(
      /["'](\.{1,2}\/.*?)\.js["']/g,
    )) {
      found.add(resolve(dirname(file), `${path}.d.ts`));
    }
  }
  return found;
}

/** @param {string} folder */
function filesIn(folder) {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile());
}

/** @param {string} folder */
function removeEmptyFolders(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) removeEmptyFolders(join(folder, entry.name));
  }
  if (readdirSync(folder).length === 0) rmdirSync(folder);
}
