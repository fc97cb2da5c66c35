import { readFileSync } from "node:fs";
import { isatty } from "node:tty";

/**
 * Whether this process is in the foreground of a terminal, so that a child of it may be given that
 * terminal. Asked of the kernel, for a terminal can be in control without being stdin or stdout.
 */
export function isInForeground(): boolean {
  let stat: string;
  try {
    stat = readFileSync("/proc/self/stat", "latin1");
  } catch {
    return isatty(0);
  }
  // After the name, which may contain anything: state, parent, group, session, terminal,
  // foreground.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [, , group, , terminal, foreground] = fields;
  return terminal !== "0" && group === foreground;
}
