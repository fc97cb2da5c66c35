import { fstatSync, writeSync } from "node:fs";
import { UsageError } from "./arguments.js";

export interface ReportOptions {
  readonly isQuiet: boolean;
  readonly isVerbose: boolean;
  /** Where events go as JSON, one a line; null: nowhere. */
  readonly jsonFd: number | null;
  /** What must never be shown, wherever a message has it from. */
  readonly secrets: readonly string[];
}

const STDERR = 2;

/** A line under way on the terminal, which the next message has to clear away first. */
export interface StatusLine {
  clear(): void;
}

/**
 * What the command line says about itself: on stderr for people, as JSON lines for programs, and
 * never on stdout, which belongs to the child.
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

  /** Something the user should know, unless he asked for quiet. */
  note(text: string): void {
    if (!this.#options.isQuiet) this.#say(text);
  }

  /** Something only the curious want to know. */
  detail(text: string): void {
    if (this.#options.isVerbose) this.#say(text);
  }

  error(text: string): void {
    this.event("error", { message: text });
    this.#say(text);
  }

  /** Tokens are strings here: a JSON number would lose their last digits. */
  event(event: string, fields: Readonly<Record<string, unknown>> = {}): void {
    const { jsonFd } = this.#options;
    if (jsonFd === null) return;
    const at = new Date().toISOString();
    this.#write(jsonFd, toJson({ event, at, ...fields }));
  }

  #say(text: string): void {
    if (!this.hasPeople) return;
    this.status?.clear();
    this.#write(STDERR, `holdfast: ${text}`);
  }

  #write(fd: number, text: string): void {
    let clean = text;
    for (const secret of this.#options.secrets) clean = clean.replaceAll(secret, "***");
    try {
      writeSync(fd, `${clean}\n`);
    } catch {
      // Nobody reads it any more (a closed pipe): no reason to fail the work it tells about.
    }
  }
}

export function toJson(value: unknown): string {
  return JSON.stringify(value, (_key, item) => (typeof item === "bigint" ? String(item) : item));
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
