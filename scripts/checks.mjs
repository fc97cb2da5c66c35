// Checks that do not run the code: types, style, the packaging and the public API.
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { pack } from "./pack.mjs";
import { runTool, secondsSince } from "./run.mjs";

const TYPE_RESOLUTION = "@arethetypeswrong/cli/dist/index.js";

/**
 * The slow ones first, so that none of them runs alone at the end.
 *
 * @param {string} tarball the packed package
 * @returns {(readonly [title: string, bin: string, ...args: string[]])[]}
 */
const checksOf = (tarball) => [
  ["type resolution", TYPE_RESOLUTION, tarball, "--profile", "esm-only"],
  ["API report", "../scripts/api.mjs"],
  ["unused code", "knip/bin/knip.js"],
  ["types", "typescript/bin/tsc"],
  ["types of scripts", "typescript/bin/tsc", "--project", "scripts"],
  ["types of the page", "typescript/bin/tsc", "--project", "src/dashboard/page", "--noEmit"],
  ["types of browser tests", "typescript/bin/tsc", "--project", "test/browser"],
  ["style", "@biomejs/biome/bin/biome", "check", "--error-on-warnings"],
  ["packaging", "publint/src/cli.js", tarball, "--strict"],
];

/**
 * Runs all checks, as many at a time as there are cores, and shows the output of those that fail.
 *
 * @returns {Promise<number>} how many failed
 */
export async function check() {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-checks-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  const left = checksOf(await pack(folder));
  let failed = 0;
  const work = async () => {
    for (let next = left.shift(); next; next = left.shift()) {
      const [title, bin, ...args] = next;
      const startedMs = performance.now();
      const { code, output } = await runTool(bin, args, { quiet: true });
      console.log(`  ${code === 0 ? "ok    " : "FAILED"} ${title} (${secondsSince(startedMs)})`);
      if (code === 0) continue;
      failed += 1;
      console.log(output.trimEnd());
    }
  };
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), 4) }, work));
  return failed;
}
