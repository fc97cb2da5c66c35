import { readFileSync } from "node:fs";
import { isatty } from "node:tty";

/**
 * The process group in the foreground of the terminal, as `kill` names it, if this process is part
 * of it: then a child may be given that terminal. Else null. The kernel is asked, because a
 * terminal can be in control without being stdin or stdout.
 */
export function ownForeground(): string | null {
  let stat: string;
  try {
    stat = readFileSync("/proc/self/stat", "latin1");
  } catch {
    return isatty(0) ? String(process.pid) : null;
  }
  // After the name, which may contain anything: state, parent, group, session, terminal,
  // foreground.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [, , group, , terminal, foreground] = fields;
  return terminal !== "0" && group === foreground ? `-${group}` : null;
}
