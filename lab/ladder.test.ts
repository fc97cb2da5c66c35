import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { subjects } from "./subjects/all.js";

const FOLDER = join(import.meta.dirname, "ladder");
const programs = readdirSync(FOLDER).filter((file) => file.startsWith("rung-"));
const MAX_LINES = 60;

describe.each(programs)("the program %s", (file) => {
  const source = readFileSync(join(FOLDER, file), "utf8");

  it("fits on a page, and says what is wrong with it", () => {
    expect(source.trimEnd().split("\n").length).toBeLessThanOrEqual(MAX_LINES);
    expect(source).toMatch(/^\/\*\*\n \* Rung [\s\S]*?\n \* Wrong with it: [\s\S]*?\*\//);
  });

  it("is tried by the lab", () => {
    expect(subjects.map(({ program }) => program)).toContain(`lab/ladder/${file}`);
  });
});
