/**
 * The command that runs under a lock, in a process group of its own, so that a signal reaches its
 * own children too and the whole can be ended at once.
 *
 * Without a terminal it simply leads a new session. In the foreground of a terminal that would cost
 * it the terminal (no prompt of ssh or sudo would work), so a launching shell with job control
 * makes the group and puts it into the foreground, and back again when it ends.
 */
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { constants as access, accessSync, statSync } from "node:fs";
import type { Readable } from "node:stream";
import { codeOfSignal, ExitCode } from "./exit-code.js";
import type { Guard } from "./guard.js";
import { isInForeground } from "./terminal.js";

export interface CommandLine {
  readonly file: string;
  readonly args: readonly string[];
}

/** The command could not be started: not found, or not allowed. */
export class LaunchError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number) {
    super(message);
    this.name = "LaunchError";
    this.exitCode = exitCode;
  }
}

// A shell with job control may lead a group of its own and have the terminal until `fg`, so what is
// typed until then reaches only the shell: it passes it on. A caught signal is default again in the
// child. A child that is stopped from the terminal is continued at once: it holds a lock.
const LAUNCHER = `
early=
pass() { if [ -n "$!" ]; then kill -s "$1" -- "-$!" 2>/dev/null; else early=$1; fi; }
for name in HUP INT QUIT TERM; do trap "pass $name" "$name"; done
set -m
"$@" 3>&- 4>&- &
echo "group $!" >&4
echo "$!" >&3
exec 3>&- 4>&-
if [ -n "$early" ]; then pass "$early"; fi
while :; do
  fg >/dev/null
  code=$?
  kill -0 "$!" 2>/dev/null || exit "$code"
done
`;

/** How often to look whether the group is gone. */
const LOOK_MS = 10;

export class Child {
  readonly #group: number;
  readonly #hasTerminal: boolean;
  #isOrphaned = false;
  /** Resolves with its exit code, as a shell would tell it, when the command itself has ended. */
  readonly ended: Promise<number>;

  private constructor(child: ChildProcess, group: number, hasTerminal: boolean) {
    this.#group = group;
    this.#hasTerminal = hasTerminal;
    this.ended = new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        this.#isOrphaned = hasTerminal && signal !== null;
        resolve(signal ? codeOfSignal(signal) : (code ?? 0));
      });
    });
  }

  /** Throws `LaunchError`. The guard knows the group before this returns. */
  static async start(line: CommandLine, env: NodeJS.ProcessEnv, guard: Guard): Promise<Child> {
    if (isInForeground()) return Child.#startOnTerminal(line, env, guard);
    const child = spawn(line.file, line.args, { env, detached: true, stdio: "inherit" });
    if (child.pid === undefined) throw await launchError(child, line.file);
    guard.watch(child.pid);
    return new Child(child, child.pid, false);
  }

  static async #startOnTerminal(
    { file, args }: CommandLine,
    env: NodeJS.ProcessEnv,
    guard: Guard,
  ): Promise<Child> {
    const path = findExecutable(file, env);
    const options: SpawnOptions = {
      env,
      stdio: ["inherit", "inherit", "inherit", "pipe", guard.pipe],
    };
    const shell = ["-c", LAUNCHER, "holdfast-launcher", path, ...args];
    const child = spawn("/bin/sh", shell, options);
    if (child.pid === undefined) throw await launchError(child, "/bin/sh");
    let text = "";
    for await (const chunk of child.stdio[3] as Readable) text += chunk;
    const group = Number(text);
    if (group > 0) return new Child(child, group, true);
    throw new LaunchError(`Cannot run ${JSON.stringify(file)}: sh failed.`, ExitCode.cannotRun);
  }

  /** Sends a signal to the whole group; a group that is gone does not mind. */
  signal(signal: NodeJS.Signals): void {
    try {
      process.kill(-this.#group, signal);
    } catch {}
  }

  /** TERM, and CONT so that what stands still hears it. */
  terminate(): void {
    this.signal("SIGTERM");
    this.signal("SIGCONT");
  }

  /** Whether anything of the group is left. */
  get isThere(): boolean {
    try {
      process.kill(-this.#group, 0);
      return true;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === "EPERM";
    }
  }

  /** Waits until nothing of the group is left, at most until `untilMs`; then KILL ends what is. */
  async endBy(untilMs: number): Promise<void> {
    while (this.isThere && performance.now() < untilMs) await pause(LOOK_MS);
    if (!this.isThere) return;
    this.signal("SIGKILL");
    // Dead at once, but it takes the kernel a moment; what hangs in the kernel must not hang us.
    for (let looks = 0; looks < 10 && this.isThere; looks += 1) await pause(LOOK_MS);
  }

  /** Its launching shell was killed, which says nothing about the command: that may still run. */
  get isOrphaned(): boolean {
    return this.#isOrphaned;
  }

  /** Whether it had the terminal to itself: what was typed there, we did not get. */
  get hadTerminal(): boolean {
    return this.#hasTerminal;
  }
}

async function launchError(child: ChildProcess, file: string): Promise<LaunchError> {
  const error = await new Promise<NodeJS.ErrnoException>((resolve) => child.once("error", resolve));
  return explain(error.code, file);
}

function explain(code: string | undefined, file: string): LaunchError {
  const name = JSON.stringify(file);
  if (code === "ENOENT") {
    const hint = file.includes("/") ? "Check the path." : "Check the name and the PATH.";
    return new LaunchError(`Cannot run ${name}: not found. ${hint}`, ExitCode.notFound);
  }
  const reason = code === "EACCES" ? "it is not executable (chmod +x?)" : (code ?? "unknown");
  return new LaunchError(`Cannot run ${name}: ${reason}.`, ExitCode.cannotRun);
}

/**
 * The path, so that the shell takes the program and none of its own commands, and our own words.
 */
function findExecutable(file: string, env: NodeJS.ProcessEnv): string {
  const folders = file.includes("/") ? [""] : (env.PATH ?? "").split(":");
  let code = "ENOENT";
  for (const folder of folders) {
    const path = file.includes("/") ? file : `${folder || "."}/${file}`;
    try {
      accessSync(path, access.X_OK);
      if (statSync(path).isFile()) return path;
      code = "EACCES";
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EACCES") code = "EACCES";
    }
  }
  throw explain(code, file);
}

function pause(delayMs: number): Promise<void> {
  return new Promise((resume) => setTimeout(resume, delayMs));
}
