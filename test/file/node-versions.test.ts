/**
 * The file store on versions of Node with a built-in SQLite. Only in the full run, which downloads
 * these versions as packages.
 */

import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, it } from "vitest";
import { isFull } from "../fixtures/depth.js";
import { fetchProgram } from "../servers/fetched-program.js";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "../..");
const PROGRAM = `node-${process.platform}-${process.arch}`;

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-node-"));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.skipIf(!isFull || process.platform !== "linux")("on newer versions of Node", () => {
  it.each(["22", "24", "26"])("%s: the conformance kit, and all faults", async (version) => {
    const place = join(folder, version);
    mkdirSync(place);
    const node = await fetchProgram(place, PROGRAM, version, "bin/node");
    const vitest = join(ROOT, "node_modules/vitest/vitest.mjs");
    const files = ["conformance", "faults", "places"].map((it) => `test/file/${it}.test.ts`);
    // It throws with the output unless all tests passed.
    await run(node, [vitest, "run", "--project=stores", ...files], { cwd: ROOT, env: plain() });
  });
});

/** The environment without the variables of this test run. */
function plain(): NodeJS.ProcessEnv {
  const entries = Object.entries(process.env);
  return Object.fromEntries(entries.filter(([name]) => !/^(?:VITEST|NODE_ENV|TEST$)/.test(name)));
}
