// Writes the Lua of the Redis store into a module, because nothing is read from disk at run time.
// `node scripts/embed-lua.mjs` after a change of a `.lua` file; `--check` only compares.
import { existsSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { root } from "./run.mjs";

const folder = `${root}src/stores/redis/`;
const target = `${folder}script.generated.ts`;

/** The script is the first two, which include the others; each may use what was before it. */
const parts = /** @type {const} */ ([
  "lone",
  "batch",
  "entry",
  "state",
  "queue",
  "holders",
  "shared",
  "rules",
  "ending",
  "oversight",
]);

/** What the module should be, after every header was held against its code. */
function embedded() {
  /** @type {Set<string>} */
  const declared = new Set();
  /** @type {Record<string, string>} */
  const code = {};
  for (const part of parts) {
    const [header = "", body = ""] = split(readFileSync(`${folder}lua/${part}.lua`, "utf8"));
    checkHeader(part, header, body, declared);
    code[part] = withoutComments(body);
  }
  const include = (/** @type {string} */ text) =>
    text.replace(/^ *include\('(\w+)'\)$/gm, (_, /** @type {string} */ part) => code[part] ?? "");
  const script = include(include(`${code.lone}\n${code.batch}`));
  if (/`|\$\{|\\/.test(script)) throw new Error("The Lua must do without `, ${ and \\.");
  return [
    "// Written by scripts/embed-lua.mjs from lua/*.lua: change those, and run it.",
    `export const SCRIPT: string = \`${script}\`;`,
    "",
  ].join("\n");
}

/** Whether the module is what its sources say. */
function isCurrent() {
  return existsSync(target) && readFileSync(target, "utf8") === embedded();
}

/**
 * @param {string} text
 * @returns {string[]} the leading comment, and the rest
 */
function split(text) {
  const lines = text.split("\n");
  const end = lines.findIndex((line) => !line.startsWith("--"));
  return [lines.slice(0, end).join("\n"), lines.slice(end).join("\n")];
}

/**
 * A header that lies is worse than none: what it takes was declared before and is used, what it
 * gives is declared here, and its commands are exactly those called.
 *
 * @param {string} part
 * @param {string} header
 * @param {string} body
 * @param {Set<string>} declared
 */
function checkHeader(part, header, body, declared) {
  const wrong = (/** @type {string} */ what) => {
    throw new Error(`lua/${part}.lua: ${what}`);
  };
  const used = new Set(withoutComments(body).match(/(?<![.\w])[A-Za-z_]\w*/g) ?? []);
  for (const name of part === parts[0] ? [] : field(header, "in")) {
    if (!declared.has(name)) wrong(`takes ${name}, which no part before it gives`);
    if (!used.has(name)) wrong(`takes ${name} for nothing`);
  }
  const locals = new Set(
    [...body.matchAll(/^local (?:function )?([\w, ]+)/gm)].flatMap(([, names = ""]) =>
      names.split(",").map((name) => name.trim()),
    ),
  );
  for (const name of field(header, "out")) {
    if (!locals.has(name)) wrong(`gives ${name}, which it does not declare`);
    declared.add(name);
  }
  for (const name of declared) {
    const isTaken = locals.has(name) || field(header, "in").includes(name);
    if (used.has(name) && !isTaken) wrong(`uses ${name}, which its header does not take`);
  }
  const called = calls(body).join(" ");
  const listed = field(header, "commands").join(" ");
  if (called !== listed) wrong(`lists the commands ${listed}; called are ${called}`);
}

/**
 * @param {string} header
 * @param {string} name
 */
function field(header, name) {
  const text = new RegExp(`^-- ${name}: +(.*(?:\\n-- {6,}.*)*)`, "m").exec(header)?.[1] ?? "";
  return text.split(/[\s-]+/).filter((word) => word !== "");
}

/** @param {string} body */
function calls(body) {
  const found = [...body.matchAll(/\b(?:call|try|write)\('([A-Z]+)'/g)].map(
    ([, name = ""]) => name,
  );
  return [...new Set(found)].sort();
}

/** @param {string} body */
function withoutComments(body) {
  return body
    .split("\n")
    .filter((line) => !/^\s*(--.*)?$/.test(line))
    .join("\n");
}

if (realpathSync(process.argv[1] ?? "") === import.meta.filename) {
  if (!process.argv.includes("--check")) writeFileSync(target, embedded());
  if (!isCurrent()) {
    console.error("src/stores/redis/script.generated.ts is stale: node scripts/embed-lua.mjs");
    process.exitCode = 1;
  }
}
