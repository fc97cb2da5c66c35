import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A folder of our own for a question. */
export class BenchFolder {
  #path: string | undefined;

  make(): string {
    this.#path = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
    return this.#path;
  }

  async remove(): Promise<void> {
    if (this.#path !== undefined) rmSync(this.#path, { recursive: true, force: true });
    this.#path = undefined;
  }
}
