/**
 * Plants each mutant in a copy of the build, and runs seeds until one fails: first the seed that
 * found the mutant before, then all seeds of a test run.
 */

import { spawn } from "node:child_process";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { isFull } from "../../test/fixtures/depth.js";
import type { Family } from "../plan.js";
import { BuildCopy } from "./build-copy.js";
import { foundAt } from "./found-at.js";
import type { Mutant } from "./mutant.js";

export interface Catch {
  readonly title: string;
  /** The seed that found the mutant; null where none did. */
  readonly seed: number | null;
  /** The seed, the checker and the time, or why the mutant was not found. */
  readonly line: string;
}

/** The seeds of a test run. */
const SEEDS = isFull ? 20_000 : 2_000;
/** A mutant may hang. Seconds of computing, which a busy machine does not use up. */
const PATIENCE_S = isFull ? 3_600 : 240;

export async function hunt(
  mutants: readonly Mutant[],
  onCatch: (found: Catch) => void = () => {},
  build: string = join(import.meta.dirname, "../.."),
): Promise<Catch[]> {
  const waiting = [...mutants];
  const catches: Catch[] = [];
  const work = async (): Promise<void> => {
    const copy = new BuildCopy(build);
    try {
      for (let mutant = waiting.shift(); mutant; mutant = waiting.shift()) {
        const found = await seek(mutant, copy, build);
        catches.push(found);
        onCatch(found);
      }
    } finally {
      copy.remove();
    }
  };
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), 2) }, work));
  return catches;
}

async function seek(mutant: Mutant, copy: BuildCopy, build: string): Promise<Catch> {
  try {
    return await copy.with(mutant, () => seekIn(copy.folder, mutant, build));
  } catch (error) {
    const { title } = mutant;
    return { title, seed: null, line: `${title}: ${(error as Error).message}` };
  }
}

async function seekIn(folder: string, mutant: Mutant, build: string): Promise<Catch> {
  const { title, family = "arbiter" } = mutant;
  const startedMs = performance.now();
  const first = foundAt[title];
  const hint = first === undefined ? null : await runSeeds(folder, family, first, 1);
  const isFound = hint?.seed != null;
  const { seed, line } = (isFound && hint) || (await runSeeds(folder, family, 0, SEEDS));
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  // The code itself may fail at this seed: a test run has only some of them.
  const own = seed === null ? null : await runSeeds(build, family, seed, 1);
  if (own?.seed != null) {
    return { title, seed: null, line: `${title}: the code without it fails, too: ${line}` };
  }
  return { title, seed, line: `${title}: ${line} ${seconds} s` };
}

/** The first seed that fails, and the first line of its report. */
function runSeeds(
  folder: string,
  family: Family,
  first: number,
  count: number,
): Promise<{ seed: number | null; line: string }> {
  return new Promise((resolve) => {
    const main = join(folder, "simulation/main.js");
    const seeds = ["--seed", String(first), "--count", String(count)];
    const args = [main, ...seeds, ...(family === "arbiter" ? [] : [`--${family}`])];
    const limited = ["-c", `ulimit -t ${PATIENCE_S} && exec "$0" "$@"`, process.execPath, ...args];
    const child = spawn("sh", limited, { stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => {
        output += text;
      });
    }
    child.on("close", (code) => {
      const [line = "", message = ""] = output.split("\n");
      const [, seed] = /^seed (\d+) .* violates /.exec(line) ?? [];
      // Code that does not fit its surroundings proves nothing about the checkers.
      if (/ (Type|Reference|Syntax)Error:/.test(message)) resolve({ seed: null, line: message });
      else if (code === 1 && seed !== undefined) resolve({ seed: Number(seed), line });
      else resolve({ seed: null, line: `NOT FOUND (exit code ${code}): ${line}` });
    });
  });
}
