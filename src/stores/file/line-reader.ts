/** A text longer than this without an end is no message of ours. */
const LONGEST = 65_536;

/** Cuts a stream of text into its lines. */
export class LineReader {
  readonly #onLine: (line: string) => void;
  #rest = "";

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  read(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    if (this.#rest.length > LONGEST) this.#rest = "";
    for (const line of lines) this.#onLine(line);
  }
}
