// Puts all that the command needs on its usual way, the file store included, into one file: Node
// takes longer to find and read a hundred small modules than to run them. Called by the set-up, for
// a build that tsc has just written.
import { rmSync } from "node:fs";
import { join } from "node:path";

/**
 * What stays apart: stores across the network, which few runs need, and the demo, which starts
 * files of its own.
 */
const APART = [/[/\\]stores[/\\](?!file|arbiter|store-url)/, /[/\\]cli[/\\]demo[/\\]/, "libsql"];

/**
 * Replaces the command's entry in a build.
 *
 * @param {string} folder the build
 */
export async function bundleCommand(folder) {
  // Not at the top: the set-up itself begins before anything is installed.
  const { rolldown } = await import("rolldown");
  const file = join(folder, "cli/main.js");
  const bundle = await rolldown({ input: file, platform: "node", external: APART });
  await bundle.write({ file, format: "esm", codeSplitting: false });
  await bundle.close();
  // It told where the lines of the small file came from.
  rmSync(`${file}.map`);
}
