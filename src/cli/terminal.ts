import { readFileSync } from "node:fs";
import { isatty } from "node:tty";

/**
 * What is in the foreground of the terminal together with this process, as `kill` names it, so that
 * a child may be given that terminal; null when this process is not. Asked of the kernel, for a
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
