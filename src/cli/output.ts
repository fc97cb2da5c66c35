/** The two streams of the command line. Nothing is written to them but through this file. */
import { writeSync } from "node:fs";
import { Interrupted } from "./exit-code.js";
import { plain } from "./plain-text.js";
import { withoutSecrets } from "./secrets.js";

const STDERR = 2;
const CLEAR_LINE = "\r\x1b[K";

/** Lines cannot be written to stdout, for another reason than that their reader has left. */
export class OutputError extends Error {
  constructor(cause: Error) {
    super(`Cannot write to stdout: ${cause.message}.`, { cause });
    this.name = "OutputError";
  }
}

/**
 * Writes lines to stdout, after a control sequence of our own. Rejects with `Interrupted` by
 * SIGPIPE where the reader has left: the verb ends as if that signal had ended it.
 */
export function print(lines: readonly string[], control = ""): Promise<void> {
  const { stdout } = process;
  // The callback tells of a failure; without a listener the same failure would end the process.
  if (stdout.listenerCount("error") === 0) stdout.on("error", () => {});
  return new Promise((resolve, reject) => {
    stdout.write(control + lines.map((line) => `${plain(line)}\n`).join(""), (error) => {
      if (!error) resolve();
      else if ((error as NodeJS.ErrnoException).code !== "EPIPE") reject(new OutputError(error));
      else reject(new Interrupted("SIGPIPE"));
    });
  });
}

/** Writes a line for people to stderr. */
export function tell(line: string): void {
  writeLine(STDERR, plain(withoutSecrets(line)));
}

/** Shows a line on the terminal of stderr that the next one replaces; an empty one clears it. */
export function showStatus(line: string): void {
  const width = process.stderr.columns ?? 80;
  const text = plain(withoutSecrets(line));
  const cut = text.length < width ? text : `${text.slice(0, width - 2)}…`;
  writeText(STDERR, CLEAR_LINE + cut);
}

/** Writes a line that is safe already. */
export function writeLine(fd: number, line: string): void {
  writeText(fd, `${line}\n`);
}

/** A message that cannot be written does not fail the command. */
function writeText(fd: number, text: string): void {
  try {
    writeSync(fd, text);
  } catch {}
}
