/** Plants every mutant in a copy of the build and looks for the first seed that finds it. */
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import type { Mutant } from "./mutant.js";

export interface Catch {
  readonly title: string;
  readonly isCaught: boolean;
  /** Which seed found it by which checker, and in what time. */
  readonly line: string;
}

/** As many seeds as a test run goes through. */
const SEEDS = 2_000;
/** A mutant may well hang: a seed takes some milliseconds. */
const PATIENCE_MS = 240_000;

export async function hunt(
  mutants: readonly Mutant[],
  onCatch: (found: Catch) => void = () => {},
  build: string = join(import.meta.dirname, "../.."),
): Promise<Catch[]> {
  const waiting = [...mutants];
  const catches: Catch[] = [];
  const work = async (): Promise<void> => {
    for (let mutant = waiting.shift(); mutant; mutant = waiting.shift()) {
      const found = await seek(mutant, build);
      catches.push(found);
      onCatch(found);
    }
  };
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), 2) }, work));
  return catches;
}

async function seek(mutant: Mutant, build: string): Promise<Catch> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-mutant-"));
  const startedMs = performance.now();
  try {
    cpSync(build, folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
    const problem = plant(mutant, folder);
    if (problem) return { title: mutant.title, isCaught: false, line: problem };
    const { code, output } = await runSeeds(folder, mutant);
    const [first = ""] = output.split("\n");
    const isCaught = code === 1 && first.startsWith("seed ");
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
    const how = isCaught ? first : `NOT FOUND (exit code ${code}): ${first}`;
    return { title: mutant.title, isCaught, line: `${mutant.title}: ${how} ${seconds} s` };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Why it cannot be planted, if it cannot. */
export function plant({ title, also, ...edit }: Mutant, build: string): string | null {
  for (const { file, find, replace } of also ? [edit, also] : [edit]) {
    const path = join(build, "src", file);
    const parts = readFileSync(path, "utf8").split(find);
    const count = parts.length - 1;
    if (count !== 1) return `${title}: the text to replace is ${count} times in ${file}, not once`;
    writeFileSync(path, parts.join(replace));
  }
  return null;
}

function runSeeds(
  folder: string,
  { family = "arbiter", firstSeed = 0 }: Mutant,
): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve) => {
    const main = join(folder, "simulation/main.js");
    const seeds = ["--seed", String(firstSeed), "--count", String(SEEDS)];
    const args = [main, ...seeds, ...(family === "arbiter" ? [] : [`--${family}`])];
    const child = spawn(process.execPath, args, {
      stdio: ["ignore", "pipe", "pipe"],
      timeout: PATIENCE_MS,
      killSignal: "SIGKILL",
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => {
        output += text;
      });
    }
    child.on("close", (code) => resolve({ code, output }));
  });
}
