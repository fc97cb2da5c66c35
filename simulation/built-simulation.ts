import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * The built simulation: plain Node runs it several times as fast as the test runner does.
 */
export const BUILD: string = fileURLToPath(new URL("../build", import.meta.url));

export interface Result {
  readonly code: number | null;
  readonly output: string;
}

/** Runs the built simulation with the arguments of `npm run simulate`. */
export function simulate(...args: readonly string[]): Promise<Result> {
  return simulateIn(BUILD, ...args);
}

/** The same for another build. */
export function simulateIn(build: string, ...args: readonly string[]): Promise<Result> {
  return new Promise((resolve) => {
    const main = join(build, "simulation/main.js");
    const child = spawn(process.execPath, [main, ...args], { stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => {
        output += text;
      });
    }
    child.on("close", (code) => resolve({ code, output }));
  });
}
