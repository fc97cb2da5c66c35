// Child processes for the other scripts.
import { spawn } from "node:child_process";
import { constants, setPriority } from "node:os";
import { fileURLToPath } from "node:url";
import { killTree } from "./processes.mjs";

/** The folder of the project, with a slash at its end. */
export const root = fileURLToPath(new URL("..", import.meta.url));

/**
 * `quiet` collects the output instead of showing it; `isLow` lets other processes go first; `env`
 * is added to the environment; `onMessage` gets what the child sends by `process.send`; an abort of
 * `signal` kills the child with everything that it started.
 *
 * @typedef {object} RunOptions
 * @property {boolean} [quiet]
 * @property {boolean} [isLow]
 * @property {Readonly<Record<string, string>>} [env]
 * @property {(message: any) => void} [onMessage]
 * @property {AbortSignal} [signal]
 * @property {string} [cwd] default: the folder of the project
 */

/** The variable that says by which call of `run` a process was started, directly or not. */
const STARTED_BY = "HOLDFAST_STARTED_BY";
/** A child that was killed, or has left a process behind, may keep its output open. */
const OUTPUT_END_MS = 10_000;
let runs = 0;

/**
 * Runs a command to its end. A signal that would end this process is passed on first, so that
 * servers started by tests are stopped.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @param {RunOptions} [options]
 * @returns {Promise<{ code: number, output: string }>}
 */
export function run(command, args, options = {}) {
  const { quiet = false, isLow = false, env = {}, onMessage, signal, cwd = root } = options;
  runs += 1;
  const mark = `${process.pid}-${runs}`;
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env, [STARTED_BY]: mark },
      stdio: [
        quiet ? "ignore" : "inherit",
        quiet ? "pipe" : "inherit",
        quiet ? "pipe" : "inherit",
        ...(onMessage ? [/** @type {const} */ ("ipc")] : []),
      ],
    });
    if (onMessage) child.on("message", onMessage);
    // The processes that it starts later have its priority, too.
    if (isLow && child.pid) setPriority(child.pid, constants.priority.PRIORITY_BELOW_NORMAL);

    /** @type {NodeJS.Signals | undefined} */
    let ending;
    const relay = (/** @type {NodeJS.Signals} */ signal) => {
      ending = signal;
      child.kill(signal);
    };
    for (const signal of ENDINGS) process.on(signal, relay);

    const end = () => killTree(child.pid ?? 0, `${STARTED_BY}=${mark}`);
    signal?.addEventListener("abort", end);

    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text) => {
        output += text;
      });
    }
    child.on("error", (error) => resolve({ code: 127, output: error.message }));
    child.on("exit", () => {
      const destroy = () => {
        child.stdout?.destroy();
        child.stderr?.destroy();
      };
      setTimeout(destroy, OUTPUT_END_MS).unref();
    });
    child.on("close", (code) => {
      signal?.removeEventListener("abort", end);
      for (const signal of ENDINGS) process.off(signal, relay);
      if (ending) process.exit(128 + constants.signals[ending]);
      resolve({ code: code ?? 1, output });
    });
  });
}

const ENDINGS = /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]);

/**
 * Runs the command of an installed package.
 *
 * @param {string} bin path below node_modules
 * @param {readonly string[]} args
 * @param {RunOptions} [options]
 */
export function runTool(bin, args, options) {
  return run(process.execPath, [`${root}node_modules/${bin}`, ...args], options);
}

/** @param {number} startedMs */
export function secondsSince(startedMs) {
  return `${tenthsSince(startedMs).toFixed(1)} s`;
}

/**
 * Seconds, to a tenth.
 *
 * @param {number} startedMs
 */
export function tenthsSince(startedMs) {
  return Math.round((performance.now() - startedMs) / 100) / 10;
}
