import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/**
 * The simulation as it is built: plain Node runs it several times as fast as a test runner does.
 */
const MAIN = fileURLToPath(new URL("../build/simulation/main.js", import.meta.url));

export interface Outcome {
  readonly code: number | null;
  readonly output: string;
}

/** Runs the built simulation with the arguments of `npm run simulate`. */
export function simulate(...args: readonly string[]): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [MAIN, ...args], { stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => {
        output += text;
      });
    }
    child.on("close", (code) => resolve({ code, output }));
  });
}
