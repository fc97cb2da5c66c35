import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { isFull } from "../test/fixtures/depth.js";

const main = join(import.meta.dirname, "build/lab/main.js");
const run = promisify(execFile);

/** The command ends with 1 when a verdict is not the one of the table in expected.ts. */
async function verdictsOf(...args: readonly string[]): Promise<readonly string[]> {
  const ended = run(process.execPath, [main, ...args]);
  const { stdout } = await ended.catch((error: { readonly stdout: string }) => error);
  return stdout.split("\n").filter((line) => /^ *\d+ of \d+ /.test(line));
}

it("every rung fails in its way, and the stores of Holdfast hold", async () => {
  const verdicts = await verdictsOf(...(isFull ? [] : ["--quick"]));
  expect(verdicts.length).toBeGreaterThan(20);
  expect(verdicts.filter((line) => /expected|failed/.test(line))).toEqual([]);
});
