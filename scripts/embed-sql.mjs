// Writes the SQL of the Postgres store into a module, because nothing is read from disk at run
// time. `npm run sql` after a change of a `.sql` file; `--check` only compares.
import { existsSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { root } from "./run.mjs";

/** In the order in which they are applied: each uses only what was made before it. */
const parts = [
  "tables",
  "rules",
  "run",
  "replies",
  "holders",
  "queue",
  "commands",
  "apply",
  "execute",
  "list",
  "fence",
  "sweep",
  "rights",
];
const folder = `${root}src/stores/postgres/`;
const target = `${folder}schema.generated.ts`;

function embedded() {
  const texts = parts.map((part) => {
    return `-- From ${part}.sql\n${readFileSync(`${folder}sql/${part}.sql`, "utf8")}`;
  });
  const sql = texts.join("\n");
  return [
    "// Written by `npm run sql` from sql/*.sql: change those, and run it.",
    `export const SCHEMA: string = \`${sql.replace(/[`\\]|\$\{/g, "\\$&")}\`;`,
    "",
  ].join("\n");
}

if (realpathSync(process.argv[1] ?? "") === import.meta.filename) {
  if (!process.argv.includes("--check")) writeFileSync(target, embedded());
  if (!existsSync(target) || readFileSync(target, "utf8") !== embedded()) {
    console.error("src/stores/postgres/schema.generated.ts is stale: npm run sql");
    process.exitCode = 1;
  }
}
