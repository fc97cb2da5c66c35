// Checks that do not run the code: types, style, the packaging and the public API.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pack } from "./pack.mjs";
import { runTool } from "./run.mjs";
import { SilenceLimit } from "./silence-limit.mjs";

/** Each takes less than a minute on a machine with nothing else to do. */
const CHECK_MS = 10 * 60_000;
const TYPE_RESOLUTION = "@arethetypeswrong/cli/dist/index.js";
// By default it has four checkers, which infer the same types four times over.
const TYPES = /** @type {const} */ (["typescript/bin/tsc", "--checkers", "1"]);

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
  ["types", ...TYPES],
  ["types of scripts", ...TYPES, "--project", "scripts"],
  ["types of the page", ...TYPES, "--project", "src/dashboard/page", "--noEmit"],
  ["types of browser tests", ...TYPES, "--project", "test/browser"],
  ["style", "@biomejs/biome/bin/biome", "check", "--error-on-warnings"],
  ["packaging", "publint/src/cli.js", tarball, "--strict"],
];

/** @typedef {{ title: string, code: number, output: string, command: string }} Checked */

/**
 * Runs all checks, two at a time.
 *
 * @param {object} listener
 * @param {(count: number) => void} listener.onPlan
 * @param {(title: string) => void} listener.onStart
 * @param {(checked: Checked) => void} listener.onEnd
 * @param {import("./run.mjs").RunOptions} options
 */
export async function check({ onPlan, onStart, onEnd }, options) {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-checks-"));
  // An interrupted run ends by an exit, too.
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  const left = checksOf(await pack(folder));
  onPlan(left.length);
  const work = async () => {
    for (let next = left.shift(); next; next = left.shift()) {
      const [title, bin, ...args] = next;
      onStart(title);
      const ending = new AbortController();
      const limit = new SilenceLimit(
        () => CHECK_MS,
        () => ending.abort("It hung, and was killed.\n"),
      );
      const { signal } = ending;
      const { code, output } = await runTool(bin, args, { ...options, quiet: true, signal });
      limit.stop();
      const command = `node ${join("node_modules", bin)} ${args.join(" ")}`.trim();
      onEnd({ title, code, output: `${signal.reason ?? ""}${output}`.trimEnd(), command });
    }
  };
  await Promise.all([work(), work()]);
}
