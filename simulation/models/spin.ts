/** Checks a model with SPIN: every state that its rules allow, or the first that breaks a claim. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** States are kept packed; one process alone has nothing to reduce. */
const CHECKER = ["-O1", "-w", "-DSAFETY", "-DNOREDUCE", "-DCOLLAPSE", "-DMEMLIM=3000"];
const DEEPEST = 100_000;

export interface Check {
  readonly isUpheld: boolean;
  readonly states: number;
  /** The output of SPIN, with the assertion that failed. */
  readonly output: string;
}

/** With the given macros defined. Throws where the search did not come to an end. */
export async function check(model: string, macros: readonly string[]): Promise<Check> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-model-"));
  try {
    const at = { cwd: folder };
    await run("spin", ["-a", ...macros.map((macro) => `-D${macro}`), model], at);
    await run("cc", [...CHECKER, "-o", "pan", "pan.c"], at);
    const { stdout } = await run(join(folder, "pan"), [`-m${DEEPEST}`, "-w20"], at);
    const [, errors] = /errors: (\d+)/.exec(stdout) ?? [];
    const [, states] = /(\d+(?:\.\d+)?(?:e\+\d+)?) states, stored/.exec(stdout) ?? [];
    const isWhole = errors !== "0" || !/not completed|max search depth too small/.test(stdout);
    if (errors === undefined || !isWhole) throw new Error(`The search was cut short:\n${stdout}`);
    return { isUpheld: errors === "0", states: Number(states), output: stdout };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
