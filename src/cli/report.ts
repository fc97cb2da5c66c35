import { fstatSync } from "node:fs";
import { UsageError } from "./arguments.js";
import { tell, writeLine } from "./output.js";
import { toJson } from "./plain-text.js";
import { withoutSecrets } from "./secrets.js";

export interface ReportOptions {
  readonly isQuiet: boolean;
  readonly isVerbose: boolean;
  /** Where events go as JSON, one a line; null: nowhere. */
  readonly jsonFd: number | null;
}

const STDERR = 2;

/** A line on the terminal that is redrawn: the next message has to clear it first. */
export interface StatusLine {
  clear(): void;
}

/**
 * The messages of holdfast itself: on stderr for people, as JSON lines for programs, and never on
 * stdout, which belongs to the command that runs.
 */
export class Report {
  readonly #options: ReportOptions;
  status: StatusLine | null = null;

  constructor(options: ReportOptions) {
    this.#options = options;
    if (options.jsonFd !== null) demandWritable(options.jsonFd);
  }

  get isQuiet(): boolean {
    return this.#options.isQuiet;
  }

  /** JSON on stderr stays parseable: then nothing else is written there. */
  get hasPeople(): boolean {
    return this.#options.jsonFd !== STDERR;
  }

  /** A message that the user should see, unless `-q` asked for quiet. */
  note(text: string): void {
    if (!this.#options.isQuiet) this.#say(text);
  }

  /** A message that only `-v` asks for. */
  detail(text: string): void {
    if (this.#options.isVerbose) this.#say(text);
  }

  /** `more`: further lines for people only. */
  error(text: string, more: readonly string[] = []): void {
    this.event("error", { message: withoutSecrets(text) });
    this.#say(text, more);
  }

  event(event: string, fields: Readonly<Record<string, unknown>> = {}): void {
    const { jsonFd } = this.#options;
    if (jsonFd === null) return;
    const at = new Date().toISOString();
    writeLine(jsonFd, toJson({ event, at, ...fields }));
  }

  #say(text: string, more: readonly string[] = []): void {
    if (!this.hasPeople) return;
    this.status?.clear();
    for (const line of [`holdfast: ${text}`, ...more]) tell(line);
  }
}

/** A descriptor that the caller did not open may be one that Node uses itself. */
function demandWritable(fd: number): void {
  try {
    const stats = fstatSync(fd);
    const isOrdinary = stats.isFile() || stats.isFIFO() || stats.isSocket();
    if (isOrdinary || stats.isCharacterDevice()) return;
  } catch {}
  throw new UsageError(
    `--json-fd ${fd} is not open: open it in the shell, as in: --json-fd 3 3>events`,
  );
}
