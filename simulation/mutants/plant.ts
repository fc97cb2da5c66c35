import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAst } from "rolldown/parseAst";
import { changed } from "./change.js";
import { markedStatement, marksIn } from "./marks.js";
import type { Edit, Mutant } from "./mutant.js";

/** The text of compiled files, by their paths. */
export type Code = ReadonlyMap<string, string>;

/** All compiled files of a folder. */
export function readCode(folder: string): Code {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const compiled = files.filter((file) => file.endsWith(".js"));
  return new Map(compiled.map((file) => [file, readFileSync(join(folder, file), "utf8")]));
}

/** The code with a mutant in it; throws where the mutant does not fit the code. */
export function plant({ rule, change, also = [] }: Mutant, code: Code): Code {
  return [{ rule, change }, ...also].reduce(plantEdit, code);
}

function plantEdit(code: Code, { rule, change }: Edit): Code {
  const found = [...code].filter(([, text]) => marksIn(text).includes(rule));
  const [[file, text] = ["", ""]] = found;
  if (found.length !== 1)
    throw new Error(`${found.length} files have the mark "${rule}", not one.`);
  const statement = markedStatement(text, rule);
  const after = changed(text, statement, change);
  const planted = text.slice(0, statement.start) + after + text.slice(statement.end);
  parseAst(planted);
  return new Map([...code, [file, planted]]);
}
