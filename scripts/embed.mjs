// Writes the modules that are made from other files: the Lua and SQL of the stores and the page of
// the dashboard. They are modules because nothing is read from disk at run time: a bundler would
// leave the files behind. Git ignores them. Set-up, `npm install` and the start of vitest write
// those that are out of date, so an edit of a source needs no step of its own.
import { existsSync, readFileSync, realpathSync, renameSync, writeFileSync } from "node:fs";
import { luaModules } from "./embed-lua.mjs";
import { pageModule } from "./embed-page.mjs";
import { sqlModule } from "./embed-sql.mjs";
import { root } from "./run.mjs";

/** Brings every generated module up to date. */
export async function embed() {
  for (const [file, text] of luaModules()) write(file, text);
  write(...sqlModule());
  const page = "src/dashboard/page.generated.ts";
  const text = await pageModule(textOf(page));
  if (text !== null) write(page, text);
}

/**
 * In one step: another process may read the file.
 *
 * @param {string} file
 * @param {string} text
 */
function write(file, text) {
  if (textOf(file) === text) return;
  const staging = `${root}${file}.${process.pid}`;
  writeFileSync(staging, text);
  renameSync(staging, `${root}${file}`);
}

/** @param {string} file */
function textOf(file) {
  return existsSync(`${root}${file}`) ? readFileSync(`${root}${file}`, "utf8") : "";
}

if (realpathSync(process.argv[1] ?? "") === import.meta.filename) await embed();
