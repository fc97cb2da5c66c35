// Writes the Lua of the stores into modules, because nothing is read from disk at run time.
// `npm run lua` after a change of a `.lua` file; `--check` only compares.
import { existsSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { root } from "./run.mjs";

const REDIS_VERBS = ["acquire", "release", "renew", "heartbeat", "inspect", "revoke"];

/** @type {Record<string, () => string[]>} */
const modules = {
  redis: () => [
    ...parts("redis", ["clock", "digits", "sweep", "shared", "rules"]),
    "/** The name of a script. */",
    `export type Verb = ${REDIS_VERBS.map((verb) => `"${verb}"`).join(" | ")};`,
    "",
    "export const SCRIPTS: Readonly<Record<Verb, string>> = {",
    ...REDIS_VERBS.map((verb) => `  ${verb}: ${literal("redis", verb)},`),
    "};",
  ],
  redlock: () => [
    ...parts("redlock", ["shared", "vote", "release", "node"]),
    ...["vote", "release", "node"].map(
      (part) => `export const ${part.toUpperCase()}: string = \`\${shared}\n\${${part}}\`;`,
    ),
  ],
};

/**
 * A constant for each part: parts that several scripts share are kept once.
 *
 * @param {string} store
 * @param {readonly string[]} names
 */
function parts(store, names) {
  return names.map((name) => `const ${name} = ${literal(store, name)};`);
}

/**
 * A file of lua/ as a template. A line `--- @include "part"` stands for that part.
 *
 * @param {string} store
 * @param {string} name
 */
function literal(store, name) {
  const text = compact(readFileSync(`${root}src/stores/${store}/lua/${name}.lua`, "utf8"));
  if (/`|\$\{|\\/.test(text)) throw new Error("The Lua must do without `, ${ and \\.");
  const included = text.replace(/^--- @include "(\w+)"$/gm, (_, part) => `\${${part}}`);
  return `\`${included}\``;
}

/** @param {string} body */
function compact(body) {
  return body
    .split("\n")
    .map((line) => line.trimStart())
    .filter((line) => !/^(--(?!- @include).*)?$/.test(line))
    .join("\n");
}

if (realpathSync(process.argv[1] ?? "") === import.meta.filename) {
  for (const [store, lines] of Object.entries(modules)) {
    const target = `${root}src/stores/${store}/script.generated.ts`;
    const header = "// Written by `npm run lua` from lua/*.lua: change those, and run it.";
    const text = [header, ...lines(), ""].join("\n");
    if (!process.argv.includes("--check")) writeFileSync(target, text);
    if (existsSync(target) && readFileSync(target, "utf8") === text) continue;
    console.error(`src/stores/${store}/script.generated.ts is stale: npm run lua`);
    process.exitCode = 1;
  }
}
