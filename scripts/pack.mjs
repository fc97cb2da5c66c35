// Packs the package as it is built. `node scripts/pack.mjs FOLDER` prints the path of the tarball.
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { run } from "./run.mjs";

/**
 * @param {string} folder where the tarball goes: never here, where one of the user's may be
 * @returns {Promise<string>} the path of the tarball
 */
export async function pack(folder) {
  const args = ["pack", "--json", "--ignore-scripts", "--pack-destination", folder];
  const { code, output } = await run("npm", args, { quiet: true });
  const name = /"filename": "(.*)"/.exec(output)?.[1];
  if (code !== 0 || !name) throw new Error(`npm pack failed:\n${output}`);
  return join(folder, name);
}

const [, program = "", folder] = process.argv;
if (folder && realpathSync(program) === import.meta.filename) console.log(await pack(folder));
