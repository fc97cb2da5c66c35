import { existsSync, readdirSync, readFileSync } from "node:fs";

// /proc is the only place that tells a stopped process from a running one, and a zombie from a live
// one, without starting another process. Where there is no /proc, a signal counts as delivered.

/** Whether the process runs or is stopped; one that has died but was not reaped is not alive. */
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

/** Whether every thread of the process is stopped, which SIGSTOP takes a moment to do. */
export function isStopped(pid: number): boolean {
  if (!existsSync("/proc/self/stat")) return true;
  return readdirSync(`/proc/${pid}/task`).every((thread) => {
    const state = stateIn(`/proc/${pid}/task/${thread}/stat`);
    // A thread that ended while we looked cannot run any more.
    return state === null || state === "T";
  });
}

function stateIn(path: string): string | null {
  try {
    const stat = readFileSync(path, "utf8");
    // The command name comes first, in brackets, and may hold anything.
    return stat.slice(stat.lastIndexOf(")") + 2).charAt(0);
  } catch {
    return null;
  }
}
