// The SQL of the Postgres store as a module: see embed.mjs.
import { readFileSync } from "node:fs";
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
const folder = "src/stores/postgres";

/**
 * The path and the text of the module.
 *
 * @returns {[file: string, text: string]}
 */
export function sqlModule() {
  const texts = parts.map((part) => {
    return `-- From ${part}.sql\n${readFileSync(`${root}${folder}/sql/${part}.sql`, "utf8")}`;
  });
  const sql = texts.join("\n").replace(/[`\\]|\$\{/g, "\\$&");
  const text = [
    "// Made from sql/*.sql by scripts/embed.mjs: edit those.",
    `export const SCHEMA: string = \`${sql}\`;`,
    "",
  ];
  return [`${folder}/schema.generated.ts`, text.join("\n")];
}
