import { existsSync, readdirSync, readFileSync } from "node:fs";

// Only /proc shows, without starting another process, whether a process is stopped, running or a
// zombie. Without /proc, a signal counts as delivered.

/** Whether the process runs or is stopped. A zombie is not alive. */
export function isAlive(pid: number): boolean {
  if (existsSync("/proc/self/stat")) {
    const state = stateIn(`/proc/${pid}/stat`);
    return state !== null && state !== "Z" && state !== "X";
  }
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Sends a signal to processes, of which some may have ended by now. */
export function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }
}

/** Whether every thread of the process is stopped: SIGSTOP takes a moment. */
export function isStopped(pid: number): boolean {
  if (!existsSync("/proc/self/stat") || !isAlive(pid)) return true;
  return readdirSync(`/proc/${pid}/task`).every((thread) => {
    const state = stateIn(`/proc/${pid}/task/${thread}/stat`);
    // The thread has ended meanwhile.
    return state === null || state === "T";
  });
}

function stateIn(path: string): string | null {
  try {
    const stat = readFileSync(path, "utf8");
    // The command name comes first, in brackets, and may contain any character.
    return stat.slice(stat.lastIndexOf(")") + 2).charAt(0);
  } catch {
    return null;
  }
}
