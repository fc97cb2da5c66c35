import { readFileSync, statSync } from "node:fs";

/** Bytes of the `-shm` file that SQLite locks to write, to checkpoint and to recover. */
const FIRST_BYTE = 120;
const LAST_BYTE = 122;

/** The process inside a transaction on this database right now, where the system tells (Linux). */
export function writerPid(path: string): number | null {
  if (process.platform !== "linux") return null;
  try {
    const { ino } = statSync(`${path}-shm`);
    for (const line of readFileSync("/proc/locks", "utf8").split("\n")) {
      // 12: POSIX  ADVISORY  WRITE 4711 fe:00:1311 120 120
      const found = /POSIX\s+\S+\s+WRITE\s+(\d+)\s+\w+:\w+:(\d+)\s+(\d+)\s+(\d+)/.exec(line);
      if (!found || Number(found[2]) !== ino) continue;
      if (Number(found[3]) > LAST_BYTE || Number(found[4]) < FIRST_BYTE) continue;
      // A process outside of this pid namespace is shown as 0.
      return Number(found[1]) || null;
    }
  } catch {
    // Not every sandbox has /proc/locks; the pid is only there to help.
  }
  return null;
}
