// Writes the Lua of the stores into modules, because nothing is read from disk at run time.
// `npm run lua` after a change of a `.lua` file; `--check` only compares.
import { existsSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { readRecords, recordModule, withPlaces } from "./lua-records.mjs";
import { root } from "./run.mjs";

/**
 * By store: the parts in the order in which each may use what was before it, those that the script
 * consists of (they include the others), and the records that TypeScript reads, too.
 *
 * @typedef {readonly string[]} Names
 * @typedef {{ parts: Names, script: Names, records: Names }} Lua
 * @type {Record<string, Lua>}
 */
const stores = {
  redis: {
    parts: [
      "lone",
      "contended",
      "register",
      "failure",
      "batch",
      "entry",
      "leftover",
      "state",
      "queue",
      "holders",
      "shared",
      "rules",
      "ending",
      "rare",
    ],
    script: ["lone", "contended", "register", "batch"],
    records: ["REQUEST", "FRESH", "RAISED", "FULL", "WAITER"],
  },
  redlock: {
    parts: ["lean", "node", "verbs", "calls"],
    script: ["lean", "calls"],
    records: ["TERMS"],
  },
};

/** @type {Lua} */
const none = { parts: [], script: [], records: [] };

/** @param {string} store */
const target = (store) => `${root}src/stores/${store}/script.generated.ts`;

/**
 * The text of the module, after every header was compared with its code.
 *
 * @param {string} store
 */
function embedded(store) {
  const { parts, script: main, records: shared } = stores[store] ?? none;
  const pathOf = (/** @type {string} */ part) => `src/stores/${store}/lua/${part}.lua`;
  const sourceOf = (/** @type {string} */ part) => readFileSync(root + pathOf(part), "utf8");
  const records = readRecords(pathOf("records"), sourceOf("records"));
  /** @type {Set<string>} */
  const declared = new Set();
  /** @type {Record<string, string>} */
  const code = {};
  for (const part of parts) {
    const file = pathOf(part);
    const [header = "", body = ""] = split(withPlaces(file, sourceOf(part), records));
    checkHeader(file, header, body, declared, part === parts[0]);
    code[part] = compact(body);
  }
  const include = (/** @type {string} */ text) =>
    text.replace(/^ *include\('(\w+)'\)$/gm, (_, /** @type {string} */ part) => code[part] ?? "");
  const script = include(include(main.map((part) => code[part]).join("\n")));
  if (/`|\$\{|\\/.test(script)) throw new Error("The Lua must do without `, ${ and \\.");
  return [
    "// Written by `npm run lua` from lua/*.lua: change those, and run it.",
    ...shared.map((record) => recordModule(records, record)),
    `export const SCRIPT: string = \`${script}\`;`,
    "",
  ].join("\n");
}

/**
 * Whether the module is up to date with its sources.
 *
 * @param {string} store
 */
function isCurrent(store) {
  return existsSync(target(store)) && readFileSync(target(store), "utf8") === embedded(store);
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
 * @param {string} file
 * @param {string} header
 * @param {string} body
 * @param {Set<string>} declared
 * @param {boolean} isFirst
 */
function checkHeader(file, header, body, declared, isFirst) {
  const wrong = (/** @type {string} */ what) => {
    throw new Error(`${file}: ${what}`);
  };
  const used = new Set(compact(body).match(/(?<![.\w])[A-Za-z_]\w*/g) ?? []);
  for (const name of isFirst ? [] : field(header, "in")) {
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
function compact(body) {
  return body
    .split("\n")
    .map((line) => line.trimStart())
    .filter((line) => !/^(--.*)?$/.test(line))
    .join("\n");
}

if (realpathSync(process.argv[1] ?? "") === import.meta.filename) {
  for (const store of Object.keys(stores)) {
    if (!process.argv.includes("--check")) writeFileSync(target(store), embedded(store));
    if (isCurrent(store)) continue;
    console.error(`src/stores/${store}/script.generated.ts is stale: npm run lua`);
    process.exitCode = 1;
  }
}
