/**
 * Starts a command in a process group of its own, and not before its reaper knows that group: a
 * shell tells the reaper and then becomes the command, so there is no moment in which the command
 * runs unwatched.
 *
 * Without a terminal the group leads a new session. In the foreground of a terminal that would cost
 * it the terminal (no prompt of ssh or sudo would work), so a launching shell with job control
 * makes the group and puts it into the foreground, and takes the terminal back when it ends.
 */
import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import { constants as access, accessSync, statSync } from "node:fs";
import type { Readable } from "node:stream";
import { codeOfSignal, ExitCode } from "./exit-code.js";
import type { Reaper } from "./reaper.js";
import { ownForeground } from "./terminal.js";

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

export interface Launched {
  /** Null when a typed signal ended the launching shell before there was a group. */
  readonly group: number | null;
  readonly hasTerminal: boolean;
  readonly exited: Promise<Exit>;
}

export interface Exit {
  /** The exit code as a shell would report it. */
  readonly code: number;
  /** The signal that ended the process we started: the command, or its launching shell. */
  readonly killedBy: NodeJS.Signals | null;
}

const NAME = "holdfast-launcher";

/** Descriptor 3 leads to the reaper. No command is started without one. */
const TELL_REAPER = `
trap "" PIPE; echo "group $$" >&3 2>/dev/null || exit ${ExitCode.cannotRun}
trap - PIPE; exec 3>&-`;

const BECOME = `${TELL_REAPER}; exec "$@"`;

// The shell stops itself until it is in the foreground: the command never runs without its
// terminal.
const BECOME_IN_FOREGROUND = `
echo "$$" >&4; exec 4>&-; ${TELL_REAPER}; kill -s STOP "$$"; exec "$@"`;

// A shell with job control may lead a group of its own and have the terminal until `fg`, so a
// signal that is typed until then reaches only the shell. The shell passes the signal on to the
// group that had the terminal before, as the terminal would have done. A caught signal is default
// again in the child. Ctrl-Z is ignored, for the command holds a lock: continuing the command is
// not enough, because the stop of a shell that is just starting a command (vfork) is not seen. A
// program that stops itself is continued. Until `set -m` the shell itself is in the group that had
// the terminal: a signal that it passes on comes back to it, and must not be passed on again.
export const LAUNCHER: string = `
before=$1 handed= passing=; shift
pass() {
  if [ -n "$handed$passing" ]; then return; fi
  passing=yes; kill -s "$1" -- "$before"; passing=
}
for name in HUP INT QUIT; do trap "pass $name" "$name"; done
trap '' TSTP
set -m
/bin/sh -c '${BECOME_IN_FOREGROUND}' ${NAME} "$@"
code=$?
exec >/dev/null 3>&- 4>&-
while kill -0 %1 2>/dev/null; do
  handed=yes; fg; code=$?; handed=
done
exit "$code"`;

/** Throws `LaunchError`. */
export async function launch(
  { file, args }: CommandLine,
  env: NodeJS.ProcessEnv,
  reaper: Reaper,
): Promise<Launched> {
  const path = findExecutable(file, env);
  const foreground = ownForeground();
  const hasTerminal = foreground !== null;
  const shell = hasTerminal ? [LAUNCHER, NAME, foreground] : [BECOME, NAME];
  const stdio: StdioOptions = ["inherit", "inherit", "inherit", reaper.pipe];
  if (hasTerminal) stdio.push("pipe");
  const child = spawn("/bin/sh", ["-c", ...shell, path, ...args], {
    env,
    stdio,
    detached: !hasTerminal,
  });
  if (child.pid === undefined) throw await spawnError(child);
  const exited = exitOf(child);
  if (!hasTerminal) return { group: child.pid, hasTerminal, exited };
  const group = Number(await textOf(child.stdio[4] as Readable));
  if (group > 0) return { group, hasTerminal, exited };
  const early = signalOf(await exited);
  if (early) return { group: null, hasTerminal, exited: Promise.resolve(early) };
  throw new LaunchError(`Cannot run ${JSON.stringify(file)}: sh failed.`, ExitCode.cannotRun);
}

function exitOf(child: ChildProcess): Promise<Exit> {
  return new Promise((resolve) => {
    child.once("exit", (code, signal) => {
      resolve({ code: signal ? codeOfSignal(signal) : (code ?? 0), killedBy: signal });
    });
  });
}

/** The signal that ended a launching shell, or the shell below it, before there was a command. */
function signalOf({ code, killedBy }: Exit): Exit | null {
  const typed = (["SIGHUP", "SIGINT", "SIGQUIT"] as const).find((name) => {
    return code === codeOfSignal(name);
  });
  const signal = killedBy ?? typed;
  return signal ? { code, killedBy: signal } : null;
}

async function textOf(stream: Readable): Promise<string> {
  let text = "";
  for await (const chunk of stream) text += chunk;
  return text;
}

async function spawnError(child: ChildProcess): Promise<LaunchError> {
  const error = await new Promise<NodeJS.ErrnoException>((resolve) => child.once("error", resolve));
  return explain(error.code, "/bin/sh");
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
 * The path of the program: with a path, the shell runs none of its own commands instead, and the
 * error for a missing program has our own text.
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
