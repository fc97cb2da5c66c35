import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Mutant } from "./mutant.js";
import { type Code, plant, readCode } from "./plant.js";

/** A copy of the build, in which one mutant after the other is planted. */
export class BuildCopy {
  readonly folder: string = mkdtempSync(join(tmpdir(), "holdfast-mutant-"));
  readonly #code: Code;

  constructor(build: string) {
    cpSync(build, this.folder, { recursive: true, filter: (file) => !file.endsWith(".map") });
    writeFileSync(join(this.folder, "package.json"), '{ "type": "module" }');
    this.#code = readCode(join(this.folder, "src"));
  }

  /** Works while the copy has the mutant in it; throws where the mutant does not fit. */
  async with<T>(mutant: Mutant, work: () => Promise<T>): Promise<T> {
    const planted = [...plant(mutant, this.#code)].filter(
      ([file, text]) => text !== this.#code.get(file),
    );
    try {
      for (const [file, text] of planted) this.#write(file, text);
      return await work();
    } finally {
      for (const [file] of planted) this.#write(file, this.#code.get(file) ?? "");
    }
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  #write(file: string, text: string): void {
    writeFileSync(join(this.folder, "src", file), text);
  }
}
