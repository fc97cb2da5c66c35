// The Lua of the stores as modules: see embed.mjs.
import { readFileSync } from "node:fs";
import { root } from "./run.mjs";

const REDIS_VERBS = ["acquire", "release", "renew", "heartbeat", "inspect", "revoke"];

/**
 * The path and the text of each module.
 *
 * @returns {[file: string, text: string][]}
 */
export function luaModules() {
  return Object.entries(modules).map(([store, lines]) => {
    const header = "// Made from lua/*.lua by scripts/embed.mjs: edit those.";
    return [`src/stores/${store}/script.generated.ts`, [header, ...lines(), ""].join("\n")];
  });
}

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
