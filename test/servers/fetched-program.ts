import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Installs a package with a program of another runtime into a folder, and returns the program. */
export async function fetchProgram(
  folder: string,
  name: string,
  version: string,
  program: string,
): Promise<string> {
  const install = ["install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts"];
  await run("npm", [...install, "--prefix", folder, `${name}@${version}`], { cwd: folder });
  return join(folder, "node_modules", name, program);
}
