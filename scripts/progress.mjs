// Shows a test run on one line: what is running and since when, and what is left.

/** Where the output is no terminal, the line comes this often. */
const LINE_EVERY_MS = 60_000;
const REDRAW_EVERY_MS = 1_000;
/** As many running files fit on the line. */
const MAX_SHOWN = 4;

export class Progress {
  #startedMs = performance.now();
  #isTerminal = Boolean(process.stdout.isTTY);
  /** @type {Map<string, number>} what is running, with its start */
  #running = new Map();
  #passed = 0;
  #failed = 0;
  /** Files that have not ended yet, as far as vitest has counted them. */
  #files = 0;
  /** Jobs that have not begun. */
  #jobs = 0;
  #timer = setInterval(
    () => this.#draw(),
    this.#isTerminal ? REDRAW_EVERY_MS : LINE_EVERY_MS,
  ).unref();

  /** @param {number} jobs */
  plan(jobs) {
    this.#jobs += jobs;
  }

  startJob() {
    this.#jobs -= 1;
  }

  /** @param {number} files */
  planFiles(files) {
    this.#files += files;
  }

  /** @param {string} what */
  start(what) {
    this.#running.set(what, performance.now());
    if (this.#isTerminal) this.#draw();
  }

  /** @param {string} what */
  end(what) {
    this.#running.delete(what);
    this.#files -= 1;
  }

  /** @param {number} count */
  passed(count) {
    this.#passed += count;
  }

  failed() {
    this.#failed += 1;
  }

  /** Prints lines that stay. @param {string} text */
  say(text) {
    process.stdout.write(`${this.#isTerminal ? "\r\x1b[K" : ""}${text}\n`);
    if (this.#isTerminal) this.#draw();
  }

  stop() {
    clearInterval(this.#timer);
    if (this.#isTerminal) process.stdout.write("\r\x1b[K");
  }

  #draw() {
    const line = this.#line();
    if (!this.#isTerminal) return void process.stdout.write(`${line}\n`);
    const columns = process.stdout.columns ?? 80;
    process.stdout.write(`\r\x1b[K${line.slice(0, columns - 1)}`);
  }

  #line() {
    const now = performance.now();
    const oldest = [...this.#running].sort(([, a], [, b]) => a - b);
    const shown = oldest.slice(0, MAX_SHOWN).map(([what, sinceMs]) => {
      return `${what.replace(/^test\/|\.test\.ts$/g, "")} ${duration(now - sinceMs)}`;
    });
    if (oldest.length > MAX_SHOWN) shown.push(`${oldest.length - MAX_SHOWN} more`);
    const counts = `${this.#passed} passed, ${this.#failed} failed`;
    const waiting = Math.max(0, this.#files - oldest.length);
    const left = [`${waiting} files left`, this.#jobs > 0 ? `${this.#jobs} parts` : ""];
    return [
      duration(now - this.#startedMs),
      counts,
      left.filter(Boolean).join(" and "),
      shown.join(", "),
    ].join(" | ");
  }
}

/** @param {number} ms */
export function duration(ms) {
  const seconds = Math.round(ms / 1000);
  return seconds < 100
    ? `${seconds} s`
    : `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")} min`;
}
