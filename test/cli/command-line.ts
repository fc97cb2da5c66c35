import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { waitUntil } from "../servers/wait-until.js";

export const MAIN: string = join(import.meta.dirname, "../../dist/cli/main.js");

export interface Result {
  /** The exit code as in a shell: 128 + n when signal n ended the process. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** One run of the built command line. */
export class Running {
  readonly process: ChildProcess;
  readonly result: Promise<Result>;
  stdout = "";
  stderr = "";

  constructor(command: string, args: readonly string[], options: SpawnOptions, input: string) {
    this.process = spawn(command, args, { ...options, stdio: "pipe" });
    this.process.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
    });
    this.process.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
    this.process.stdin?.on("error", () => {});
    this.process.stdin?.end(input);
    this.result = new Promise((resolve, reject) => {
      this.process.once("error", reject);
      this.process.once("close", (code, signal) => {
        const exit = signal ? 128 + constants.signals[signal] : (code ?? -1);
        resolve({ code: exit, stdout: this.stdout, stderr: this.stderr });
      });
    });
  }

  get pid(): number {
    return this.process.pid ?? -1;
  }

  kill(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }

  /** Resolves when the output contains the text. */
  async shows(text: string): Promise<void> {
    await waitUntil(() => (this.stdout + this.stderr).includes(text), {
      what: `the output contains ${text}`,
    });
  }
}

export interface StartOptions {
  readonly input?: string;
  readonly env?: NodeJS.ProcessEnv;
}

/** A folder with a store, and runs of the command line on it. */
export class Workshop implements AsyncDisposable {
  readonly folder: string = mkdtempSync(join(tmpdir(), "holdfast-cli-"));
  readonly #running = new Set<Running>();

  get store(): string {
    return `file:${this.path("locks.db")}`;
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  read(name: string): string {
    try {
      return readFileSync(this.path(name), "utf8");
    } catch {
      return "";
    }
  }

  /** Resolves when a file has that many lines. */
  async lines(name: string, count: number): Promise<string[]> {
    const list = (): string[] => this.read(name).split("\n").filter(Boolean);
    await waitUntil(() => list().length >= count, { what: `${count} lines in ${name}` });
    return list();
  }

  start(args: readonly string[], { input = "", env = {} }: StartOptions = {}): Running {
    return this.startProgram(process.execPath, [MAIN, ...args], { input, env });
  }

  /** Runs another program with the same folder and store. */
  startProgram(
    command: string,
    args: readonly string[],
    { input = "", env = {} }: StartOptions = {},
  ): Running {
    const { HOLDFAST_HANDLE: _, ...inherited } = process.env;
    const all = { ...inherited, HOLDFAST_STORE: this.store, ...env };
    const running = new Running(command, args, { cwd: this.folder, env: all }, input);
    this.#running.add(running);
    return running;
  }

  run(args: readonly string[], options?: StartOptions): Promise<Result> {
    return this.start(args, options).result;
  }

  /** Starts a process that holds a lock until it is killed. Resolves when it holds. */
  async hold(...args: string[]): Promise<Running> {
    const holder = this.start(["run", ...args, "--", "sh", "-c", "echo held; exec sleep 60"]);
    await holder.shows("held");
    return holder;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const running of this.#running) {
      const { exitCode, signalCode } = running.process;
      if (exitCode !== null || signalCode !== null) continue;
      running.kill("SIGCONT");
      running.kill("SIGTERM");
    }
    await Promise.all([...this.#running].map(({ result }) => result));
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Whether a process runs. A zombie does not run. */
export function isRunning(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3) !== "Z";
  } catch {
    return false;
  }
}
